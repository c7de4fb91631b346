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

// A daemon that was stopped, or whose memory is swapped out, accepts connections (the system does that) and never answers. How long it is
// waited for, first for the answer, then for a sign of life on a second connection.
const (
	silentAfter = 5 * time.Second
	signWithin  = 5 * time.Second
)

// SilentError is returned for a request that a daemon has not answered that does not answer anything else either. It is a
// context.DeadlineExceeded.
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

// Patient returns a client whose requests wait for a daemon that does not answer, instead of failing with a SilentError. say, which may be
// called from any goroutine, is told when such a wait begins and when it ends. It shares its connections with c, so that closing one is
// enough.
func (c *Client) Patient(say func(silent bool)) *Client {
	patient := *c
	patient.patient = say
	return &patient
}

// Alive reports whether the daemon gives a sign of life on a connection of its own: false if it accepts that and is silent for 5 s. Where
// no daemon runs there is nothing to wait for, and it is true.
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

// watch looks for signs of life while a request waits for its answer. stop ends that. Without signs it calls fail or, if the client is
// patient, reports that.
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

// roundTrip is http.Client.Do for a daemon that may have stopped. It returns when the answer begins; the body is not watched.
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

// lastRead ends a request's context with its body.
type lastRead struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (l *lastRead) Close() error {
	defer l.cancel()
	return l.ReadCloser.Close()
}
