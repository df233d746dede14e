package object

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	maxSize     = 5 << 30 // bytes that S3 takes in one request, and a condition is for one request
	putAttempts = 3       // at a write, whose caller knows how to wait
)

// Create makes an object of a file, unless there is one of that name: the error is
// then fs.ErrExist. So it is, too, where the object is this very one, because an
// earlier attempt has come through though its answer has not.
func (c *Client) Create(url string, file *os.File) error {
	return c.put(url, file, aws.String("*"))
}

// Put makes an object of a file, in the place of an earlier one.
func (c *Client) Put(url string, file *os.File) error { return c.put(url, file, nil) }

func (c *Client) put(url string, file *os.File, unless *string) error {
	bucket, key, err := split(url)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxSize {
		return &fs.PathError{Op: "create", Path: url, Err: fmt.Errorf("%d bytes are more than the %d that an object can be made of in one request", info.Size(), int64(maxSize))}
	}
	content := io.NewSectionReader(file, 0, info.Size())
	sum := sha256.New() // the server compares it with what has arrived
	if _, err := io.Copy(sum, content); err != nil {
		return err
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = c.s3.PutObject(c.ctx, &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: content, ContentLength: aws.Int64(info.Size()), IfNoneMatch: unless,
		ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum.Sum(nil))),
	}, fewAttempts)
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok && response.HTTPStatusCode() == http.StatusPreconditionFailed {
		return &fs.PathError{Op: "create", Path: url, Err: fs.ErrExist}
	}
	if err != nil {
		return explain("create", url, err)
	}
	return nil
}

// Remove removes an object, if there is one.
func (c *Client) Remove(url string) error {
	bucket, key, err := split(url)
	if err != nil {
		return err
	}
	if _, err := c.s3.DeleteObject(c.ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key}, fewAttempts); err != nil {
		return explain("remove", url, err)
	}
	return nil
}

func fewAttempts(o *s3.Options) {
	if o.RetryMaxAttempts == 0 || o.RetryMaxAttempts > putAttempts {
		o.RetryMaxAttempts = putAttempts
	}
	o.Retryer = retry.AddWithErrorCodes(o.Retryer, "ConditionalRequestConflict") // of two that create it at once
}
