package agenttools

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tether/internal/retry"
)

// Times and bounds of a probe.
const (
	probeEvery   = 100 * time.Millisecond
	otherEvery   = time.Second     // while another program has the port, since finding that out takes longer
	probeTimeout = 2 * time.Second // bounds one try
	maxURL       = 2000            // bytes
	maxRedirects = 5
)

// probe tries whether something on this machine can be reached.
type probe interface {
	// try returns nil if it can be reached now.
	try(context.Context) error
	// why returns the reason with which the wait ends when try succeeds.
	why() Reason
	// tell adds the findings to the answer. It is called after the last try has ended.
	tell(*WaitAnswer)
}

// addPort adds a probe of a port of this machine.
func (w *wait) addPort(l Locator, id string, port int) error {
	if err := inRange("port", int64(port), 1, 65535); err != nil {
		return err
	}
	w.probes = append(w.probes, &portProbe{id: id, port: port, locator: l})
	return mayEver(l, port, false)
}

// addURL adds a probe of a URL of this machine.
func (w *wait) addURL(l Locator, text string) error {
	u, err := loopbackURL(text)
	if err != nil {
		return err
	}
	port, err := URLPort(text)
	if err != nil {
		return err
	}
	w.probes = append(w.probes, &urlProbe{url: u.String(), client: newProbeClient(l)})
	return mayEver(l, port, true)
}

// mayEver returns why a wait may never connect to a port, if so.
func mayEver(l Locator, port int, url bool) error {
	_, err := reach(l, port, url)
	if _, closed := errors.AsType[*ClosedError](err); closed {
		return nil
	}
	return err
}

// startProbes starts the probes. They try until one succeeds, which ends the wait, or ctx
// ends. The returned function waits until they have ended.
func (w *wait) startProbes(ctx context.Context, end context.CancelCauseFunc) func() {
	var wg sync.WaitGroup
	for _, p := range w.probes {
		wg.Go(func() {
			for {
				try, cancel := context.WithTimeout(ctx, probeTimeout)
				err := p.try(try)
				cancel()
				if err == nil {
					end(p.why())
					return
				}
				every := probeEvery
				if closed, is := errors.AsType[*ClosedError](err); is && closed.Other {
					every = otherEvery
				}
				if !retry.Wait(ctx, every) {
					return
				}
			}
		})
	}
	return wg.Wait
}

// portProbe connects to a TCP port of the loopback interface.
type portProbe struct {
	id      string
	port    int
	locator Locator // or nil

	mu     sync.Mutex // guards the rest
	addr   string     // address that accepted a connection, "" before
	failed error      // of the last try
}

func (p *portProbe) try(ctx context.Context) error {
	conn, err := dialLoopback(ctx, p.locator, p.port, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil || err == nil {
		p.failed = err
	}
	if err != nil {
		return err
	}
	p.addr = conn.RemoteAddr().String()
	return conn.Close()
}

func (p *portProbe) why() Reason { return ReasonPort }

// The values of WaitAnswer.Listener. They matter because an old server may still have the
// port that the awaited one needs.
const (
	listenerSame  = "this terminal"
	listenerOther = "another program"
)

func (p *portProbe) tell(r *WaitAnswer) {
	p.mu.Lock()
	r.Address = p.addr
	tellOther(r, p.failed)
	p.mu.Unlock()
	if r.Address == "" || p.locator == nil {
		return
	}
	if yes, known := p.locator.Listens(p.id, p.port); known {
		r.Listener = listenerOther
		if yes {
			r.Listener = listenerSame
		}
	}
}

// tellOther adds that another program listens on the port, if the last try has failed for
// that.
func tellOther(r *WaitAnswer, failed error) {
	if closed, is := errors.AsType[*ClosedError](failed); is && closed.Other {
		r.Listener, r.Detail = listenerOther, closed.Error()
	}
}

// urlProbe requests a URL.
type urlProbe struct {
	url    string
	client *http.Client

	mu     sync.Mutex // guards the rest
	status int        // HTTP status of the last answer; 0 before
	failed error      // of the last try
}

func (p *urlProbe) try(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "tether")
	resp, err := p.client.Do(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			p.failed = err
		}
		return err
	}
	resp.Body.Close()
	p.status = resp.StatusCode
	if resp.StatusCode/100 != 2 {
		p.failed = errors.New("it answers " + strconv.Itoa(resp.StatusCode))
	} else {
		p.failed = nil
	}
	return p.failed
}

func (p *urlProbe) why() Reason { return ReasonURL }

func (p *urlProbe) tell(r *WaitAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Status = p.status
	if r.Reason == ReasonTimeout && p.failed != nil {
		r.Detail = p.failed.Error()
	}
	tellOther(r, p.failed)
}
