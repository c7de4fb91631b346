package localclient

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"tether/agent/localapi"
	"tether/platform/ipc"
)

// A daemon whose process is stopped, or whose memory is swapped out, never answers, although the system accepts connections for it.
// silentAfter is how long a request waits for the answer before a second connection is tried, and signWithin is how long that one waits for
// an answer.
const (
	silentAfter = 5 * time.Second
	signWithin  = 5 * time.Second
)

// SilentError is the error of a request if the daemon has answered neither it nor a request on a second connection. errors.Is finds
// context.DeadlineExceeded in it.
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

// Patient returns a client whose requests wait for a daemon that does not answer, instead of failing with a SilentError. It calls say, from
// any goroutine, when such a wait begins and when it ends. The client shares its connections with c, so that closing one of the two is
// enough.
func (c *Client) Patient(say func(silent bool)) *Client {
	patient := *c
	patient.patient = say
	return &patient
}

// Alive reports whether the daemon answers on a separate connection. It returns false if the daemon accepts the connection and does not
// answer for 5 s. It returns true if no daemon runs, since there is nothing to wait for.
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

// watch checks that the daemon is alive while a request waits for its answer, until stop is called. If the daemon is silent, watch calls
// fail or, if the client is patient, the function of Patient.
func (c *Client) watch(ctx context.Context, fail func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var silent atomic.Bool
	look := func() {
		for ctx.Err() == nil {
			alive := c.Alive(ctx)
			if !alive && c.patient == nil {
				fail()
				return
			}
			if ctx.Err() == nil && silent.Swap(!alive) == alive {
				c.patient(!alive)
			}
			select {
			case <-time.After(c.after):
			case <-ctx.Done():
			}
		}
	}
	timer := time.AfterFunc(c.after, look)
	return func() {
		timer.Stop()
		cancel()
		if silent.Load() {
			c.patient(false)
		}
	}
}

// roundTrip sends a request as http.Client.Do does, and watches whether the daemon is alive until the answer begins. It does not watch the
// body.
func (c *Client) roundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	var failed atomic.Bool
	stop := c.watch(ctx, func() { failed.Store(true); cancel() })
	resp, err := c.http.Do(r.WithContext(ctx))
	stop()
	if err != nil {
		cancel()
		if failed.Load() && r.Context().Err() == nil {
			return nil, &SilentError{Changing: r.Method != http.MethodGet}
		}
		return nil, plain(err)
	}
	resp.Body = &lastRead{resp.Body, cancel}
	return resp, nil
}

// lastRead is the body of an answer; closing it ends the request's context.
type lastRead struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (l *lastRead) Close() error {
	defer l.cancel()
	return l.ReadCloser.Close()
}
