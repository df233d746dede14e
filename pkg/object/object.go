// Package object reads the objects of S3, and of what speaks its protocol, as if
// they were files, and makes objects of files, also where none of that name must be.
//
// An object is named by a URL, s3://BUCKET/KEY, in which the key is as it is:
// nothing is escaped. Who we are, the region and, where it is not AWS, the server
// come from where all tools of AWS look: the variables AWS_…, the profile that
// AWS_PROFILE names in ~/.aws, the role of the machine or the pod.
//
// As in package os, a call has no context: one whose connection is silent for a
// minute is tried again, and all of them end, at once where the context of the Client
// does. A Client may be used concurrently, a Reader for one Read and any number of
// ReadAt at a time.
package object

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// Scheme begins the name of every object.
const Scheme = "s3://"

const (
	silence  = time.Minute // of a connection, after which it counts as broken
	attempts = 8           // at a request; with what the client waits in between, about half a minute
)

// Is reports whether a name is one of an object, or of several.
func Is(name string) bool { return strings.HasPrefix(name, Scheme) }

// split returns bucket and key of a URL.
func split(url string) (bucket, key string, err error) {
	rest, ok := strings.CutPrefix(url, Scheme)
	bucket, key, _ = strings.Cut(rest, "/")
	if !ok || bucket == "" {
		return "", "", fmt.Errorf("%s: want %sBUCKET/KEY", url, Scheme)
	}
	return bucket, key, nil
}

// Client speaks to the server.
type Client struct {
	s3    *s3.Client
	ctx   context.Context // of all calls: io.Reader and fs.FS have no place for one
	pause time.Duration   // before the third attempt at a byte, doubled for each that follows
}

// New returns a client, as environment and profile say. It does not connect yet. What
// it does, and what its Readers do, ends with the context.
func New(ctx context.Context) (*Client, error) {
	transport := awshttp.NewBuildableClient().WithReadTimeout(0).WithTransportOptions(listen)
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(transport))
	if err != nil {
		return nil, fmt.Errorf("find out how to reach S3: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1" // as for most tools; explain says so where the bucket is in another
	}
	if strings.Trim(cfg.Region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return nil, fmt.Errorf("find out how to reach S3: the region %q is none; AWS_REGION or ~/.aws say which, such as us-east-1", cfg.Region)
	}
	return &Client{ctx: ctx, pause: 100 * time.Millisecond, s3: s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.DisableLogOutputChecksumValidationSkipped = true // servers other than AWS have none
		if cfg.RetryMaxAttempts == 0 && cfg.Retryer == nil {
			o.Retryer = retry.AddWithMaxAttempts(retry.NewStandard(), attempts)
		}
		o.UsePathStyle = o.BaseEndpoint != nil // a server of somebody's own has one name for all buckets
	})}, nil
}

// Entry is an object as a list has it.
type Entry struct {
	URL  string
	Size int64
}

// List yields the objects whose URLs begin with url, which has a bucket, sorted
// byte by byte. An error is the last that it yields.
func (c *Client) List(url string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		bucket, prefix, err := split(url)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		pages := s3.NewListObjectsV2Paginator(c.s3, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := pages.NextPage(c.ctx)
			if err != nil {
				yield(Entry{}, explain("list", url, err))
				return
			}
			for _, o := range page.Contents {
				if !yield(Entry{URL: Scheme + bucket + "/" + aws.ToString(o.Key), Size: aws.ToInt64(o.Size)}, nil) {
					return
				}
			}
		}
	}
}

// explain says in the words of package fs what the server, or the way to it, has
// against a call.
func explain(op, url string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		// It is us who want no more.
	} else if answer, ok := errors.AsType[smithy.APIError](err); ok {
		err = explainAnswer(answer, err)
	} else if _, ok := errors.AsType[*smithy.OperationError](err); ok {
		err = &failure{err, true} // no answer came
	}
	return &fs.PathError{Op: op, Path: url, Err: err}
}

func explainAnswer(answer smithy.APIError, err error) error {
	reason := answer.ErrorCode() + ": " + answer.ErrorMessage()
	response, _ := errors.AsType[*awshttp.ResponseError](err)
	if response == nil {
		return &failure{errors.New(reason), true}
	}
	if region := response.Response.Header.Get("X-Amz-Bucket-Region"); region != "" && response.HTTPStatusCode() < 500 && slices.Contains(regionCodes(), answer.ErrorCode()) {
		reason += fmt.Sprintf(" (the bucket is in %s: AWS_REGION=%[1]s)", region)
	}
	switch status := response.HTTPStatusCode(); status {
	case http.StatusNotFound:
		return &failure{fmt.Errorf("%w (%s)", fs.ErrNotExist, reason), answer.ErrorCode() == "NoSuchBucket"}
	case http.StatusForbidden, http.StatusUnauthorized:
		return &failure{fmt.Errorf("%w (%s)", fs.ErrPermission, reason), true}
	case http.StatusPreconditionFailed:
		return ErrChanged
	case http.StatusConflict, http.StatusTooManyRequests:
		return &failure{errors.New(reason), true}
	default:
		return &failure{errors.New(reason), status >= 500 && status != http.StatusNotImplemented || answer.ErrorCode() == "ExpiredToken"}
	}
}

// regionCodes are what a server answers in a region that is not the bucket's.
func regionCodes() []string {
	return []string{"PermanentRedirect", "MovedPermanently", "AuthorizationHeaderMalformed", "TemporaryRedirect", "IllegalLocationConstraintException"}
}

// failure is an error of the server, or of the way to it.
type failure struct {
	error
	passes bool
}

func (f *failure) Unwrap() error { return f.error }

// Passes reports whether an error is one that time or people can remove, so that the
// same call may come through later: the server is away, out of order or full, or takes
// nothing from us.
func Passes(err error) bool {
	f, ok := errors.AsType[*failure](err)
	return ok && f.passes
}
