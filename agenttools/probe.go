package agenttools

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Times and bounds of a probe.
const (
	probeEvery   = 100 * time.Millisecond
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

// addProbes adds the probes that the arguments ask for to the wait.
func (s *Set) addProbes(w *wait, a *waitArgs) error {
	if (a.Port != nil || a.URL != "") && !s.opts.Loopback {
		return errors.New("port and url are not available here: the terminals run on another machine")
	}
	if a.Port != nil {
		if err := inRange("port", *a.Port, 1, 65535); err != nil {
			return err
		}
		p := &portProbe{id: a.TerminalID, port: int(*a.Port)}
		p.locator, _ = s.opts.Terminals.(Locator)
		w.probes = append(w.probes, p)
	}
	if a.URL != "" {
		return w.addURL(a.URL)
	}
	return nil
}

// addURL adds a probe of a URL of this machine.
func (w *wait) addURL(text string) error {
	u, err := loopbackURL(text)
	if err != nil {
		return err
	}
	w.probes = append(w.probes, &urlProbe{url: u.String(), client: newProbeClient()})
	return nil
}

// startProbes starts the probes. They try until one succeeds, which ends the wait, or ctx ends. The returned function waits until they have
// ended.
func (w *wait) startProbes(ctx context.Context, end context.CancelCauseFunc) func() {
	var wg sync.WaitGroup
	for _, p := range w.probes {
		wg.Go(func() {
			tick := time.NewTicker(probeEvery)
			defer tick.Stop()
			for {
				try, cancel := context.WithTimeout(ctx, probeTimeout)
				err := p.try(try)
				cancel()
				if err == nil {
					end(p.why())
					return
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
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

	mu   sync.Mutex
	addr string // address that accepted a connection, "" before; guarded by mu
}

func (p *portProbe) try(ctx context.Context) error {
	conn, err := dialLoopback(ctx, strconv.Itoa(p.port))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.addr = conn.RemoteAddr().String()
	p.mu.Unlock()
	return conn.Close()
}

func (p *portProbe) why() Reason { return ReasonPort }

// The values of WaitAnswer.Listener. They matter because an old server may still have the port that the awaited one needs.
const (
	listenerSame  = "this terminal"
	listenerOther = "another program"
)

func (p *portProbe) tell(r *WaitAnswer) {
	p.mu.Lock()
	r.Address = p.addr
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

// urlProbe requests a URL.
type urlProbe struct {
	url    string
	client *http.Client

	mu     sync.Mutex // guards the rest
	status int        // HTTP status of the last answer; 0 before
	failed string     // how the last try failed; "" after a success
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
			p.failed = err.Error()
		}
		return err
	}
	resp.Body.Close()
	p.status = resp.StatusCode
	if resp.StatusCode/100 != 2 {
		p.failed = "it answers " + strconv.Itoa(resp.StatusCode)
		return errors.New(p.failed)
	}
	p.failed = ""
	return nil
}

func (p *urlProbe) why() Reason { return ReasonURL }

func (p *urlProbe) tell(r *WaitAnswer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Status = p.status
	if r.Reason == ReasonTimeout {
		r.Detail = p.failed
	}
}
