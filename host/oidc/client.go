package oidc

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	requestTime = 10 * time.Second // for one request to the provider, with its answer
	maxAnswer   = 1 << 20          // bytes of an answer; keys and configurations are some KiB
)

// errLongAnswer ends the reading of an answer that is too long.
var errLongAnswer = errors.New("the identity provider's answer is longer than 1 MiB")

// newClient returns a client only for the provider. It follows no redirects, because the
// provider's configuration names its addresses.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{Transport: short{transport}, Timeout: requestTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// short is a transport that bounds the size of answers.
type short struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b short) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: maxAnswer}
	}
	return answer, err
}

// boundedBody is a body that fails once it is too long.
type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if b.left -= n; b.left < 0 {
		return 0, errLongAnswer
	}
	return n, err
}
