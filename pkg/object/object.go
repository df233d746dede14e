// Package object reads the objects of S3, and of what speaks its protocol, as if
// they were files.
//
// An object is named by a URL, s3://BUCKET/KEY, in which the key is as it is:
// nothing is escaped. Who we are, the region and, where it is not AWS, the server
// come from where all tools of AWS look: the variables AWS_…, the profile that
// AWS_PROFILE names in ~/.aws, the role of the machine or the pod.
//
// As in package os, a call has no context: one whose connection is silent for a
// minute is tried again, and all of them end. A Client may be used concurrently, a
// Reader for one Read and any number of ReadAt at a time.
package object

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
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
	pause time.Duration // before the third attempt at a byte, doubled for each that follows
}

// New returns a client, as environment and profile say. It does not connect yet.
func New() (*Client, error) {
	cfg, err := config.LoadDefaultConfig(context.Background(),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithReadTimeout(silence)))
	if err != nil {
		return nil, fmt.Errorf("find out how to reach S3: %w", err)
	}
	return &Client{pause: 100 * time.Millisecond, s3: s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.DisableLogOutputChecksumValidationSkipped = true // servers other than AWS have none
		if cfg.RetryMaxAttempts == 0 && cfg.Retryer == nil {
			o.Retryer = retry.AddWithMaxAttempts(retry.NewStandard(), attempts)
		}
		if o.BaseEndpoint == nil {
			return
		}
		// A server of somebody's own has one name for all buckets, and seldom regions.
		o.UsePathStyle = true
		if o.Region == "" {
			o.Region = "us-east-1"
		}
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
			page, err := pages.NextPage(context.Background())
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
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		reason := answer.ErrorCode() + ": " + answer.ErrorMessage()
		switch response, _ := errors.AsType[*awshttp.ResponseError](err); {
		case response == nil:
			err = errors.New(reason)
		case response.HTTPStatusCode() == http.StatusNotFound:
			err = fmt.Errorf("%w (%s)", fs.ErrNotExist, reason)
		case response.HTTPStatusCode() == http.StatusForbidden:
			err = fmt.Errorf("%w (%s)", fs.ErrPermission, reason)
		case response.HTTPStatusCode() == http.StatusPreconditionFailed:
			err = ErrChanged
		default:
			err = errors.New(reason)
		}
	}
	return &fs.PathError{Op: op, Path: url, Err: err}
}
