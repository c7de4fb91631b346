package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// pauses are the pauses before each attempt to deliver a message. The first is short: a
// receiver may be busy with something else for a moment.
var pauses = []time.Duration{0, 2 * time.Second, 15 * time.Second, 2 * time.Minute, 8 * time.Minute, 30 * time.Minute}

const (
	// Tries is how often a message is tried that nobody waits for any more after some
	// minutes.
	Tries = 5
	// maxAfter bounds the pause that a receiver asks for.
	maxAfter = time.Hour
)

// Pause returns the pause before an attempt; the first one is number 0. after is the
// Result.After of the attempt before.
func Pause(try int, after time.Duration) time.Duration {
	d := pauses[min(try, len(pauses)-1)]
	return max(time.Duration(float64(d)*(0.8+0.4*mrand.Float64())), after)
}

// Failure is why a receiver was not reached or did not take a message, in MCP's words. It
// contains no text of the receiver's, and nothing of its URL.
type Failure string

// The failures.
const (
	Refused Failure = "connection_refused"
	Timeout Failure = "timeout"
	TLS     Failure = "tls_error"
	HTTP4xx Failure = "http_4xx"
	HTTP5xx Failure = "http_5xx"
)

// Result is the end of one attempt.
type Result struct {
	Status  int           // 0: no answer
	Answer  []byte        // the beginning of the body
	Failure Failure       // "" for a 2xx status
	Unsure  bool          // the receiver may have taken the message despite Failure
	After   time.Duration // the pause that the receiver asks for, at most an hour
}

// Send sends a request and reads at most most bytes of the answer. A redirect is a
// failure: it is not followed.
func Send(client *http.Client, r *http.Request, most int64) Result {
	got, err := client.Do(r)
	if err != nil {
		failure := failureOf(err)
		return Result{Failure: failure, Unsure: failure != TLS && !unreached(err)}
	}
	defer got.Body.Close()
	out := Result{Status: got.StatusCode, Unsure: got.StatusCode < 300}
	out.Answer, err = io.ReadAll(io.LimitReader(got.Body, most))
	switch {
	case got.StatusCode >= 500:
		out.Failure = HTTP5xx
	case got.StatusCode >= 300:
		out.Failure = HTTP4xx
	case err != nil:
		out.Failure = failureOf(err)
	}
	if out.Failure != "" {
		out.After = after(got.Header.Get("Retry-After"))
	}
	return out
}

// after returns the pause that a header Retry-After asks for.
func after(text string) time.Duration {
	d := time.Duration(0)
	if n, err := strconv.Atoi(text); err == nil {
		d = min(time.Duration(max(n, 0)), maxAfter/time.Second) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), maxAfter)
}

// unreached reports whether an error says that there was no connection.
func unreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	_, unknown := errors.AsType[*net.DNSError](err)
	return ok && op.Op == "dial" || unknown || errors.Is(err, errAddress)
}

// failureOf returns why there was no answer.
func failureOf(err error) Failure {
	var wrong *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var name x509.HostnameError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &wrong), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &name):
		return TLS
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	}
	return Refused
}
