package localclient

import (
	"context"
	"net"
	"net/http"
	"time"

	"tether/agent/localapi"
	"tether/internal/retry"
	"tether/platform/ipc"
)

// A daemon whose process is stopped, or whose memory is swapped out, never answers,
// although the system accepts connections for it. silentAfter is how long a request waits
// for the answer before a second connection is tried, and signWithin is how long that one
// waits for an answer.
const (
	silentAfter = 5 * time.Second
	signWithin  = 5 * time.Second
)

// SilentError is the error of a request if the daemon has answered neither it nor a
// request on a second connection. errors.Is finds context.DeadlineExceeded in it.
type SilentError struct {
	Changing bool // the request may have taken effect
}

func (e *SilentError) Error() string {
	if e.Changing {
		return "the daemon does not answer; the request may have begun, or may begin later"
	}
	return "the daemon does not answer"
}

func (e *SilentError) Unwrap() error { return context.DeadlineExceeded }

// Patient returns a client whose requests wait for a daemon that does not answer, instead
// of failing with a SilentError. It calls say, from any goroutine, with true when such a
// wait begins, and with false when the daemon answers. The client shares its connections
// with c, so that closing one of the two is enough.
func (c *Client) Patient(say func(silent bool)) *Client {
	patient := *c
	patient.patient = say
	return &patient
}

// Alive reports whether the daemon answers on a separate connection. It returns false if
// the daemon accepts the connection and does not answer for 5 s. It returns true if no
// daemon runs, since there is nothing to wait for.
func (c *Client) Alive(ctx context.Context) bool {
	asked, cancel := context.WithTimeout(ctx, c.sign)
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return ipc.Dial(ctx, c.socket) }
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(asked, http.MethodGet, "http://"+localapi.Host+"/v1/health", nil)
	if err != nil {
		return true
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return asked.Err() == nil || ctx.Err() != nil
	}
	resp.Body.Close()
	return true
}

// Watch checks from time to time until stop is called whether the daemon is alive. It
// calls say, from another goroutine, when the daemon stops answering and when it answers
// again. busy, if not nil, says whether the caller waits for anything now.
func (c *Client) Watch(ctx context.Context, busy func() bool, say func(silent bool)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for silent := false; ; {
			if !retry.Wait(ctx, c.after) {
				return
			}
			if !silent && busy != nil && !busy() {
				continue
			}
			if alive := c.Alive(ctx); alive == silent && ctx.Err() == nil {
				silent = !alive
				say(silent)
			}
		}
	}()
	return func() { cancel(); <-ended }
}
