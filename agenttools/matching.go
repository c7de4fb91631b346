package agenttools

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"tether/internal/change"
	"tether/problems"
	"tether/vocab"
)

const (
	// matchFor is how long new output is matched after a request.
	matchFor = 10 * time.Minute
	// maxMatched bounds the terminals whose problems are remembered. To make room for
	// another, the one whose last request is oldest is forgotten.
	maxMatched = 64
)

// Matching finds problems in the output of terminals. It begins to match a terminal's
// output at the first request about the terminal and continues for ten minutes after the
// last one. It remembers its findings when the output is not kept any more. It is safe
// for concurrent use.
type Matching struct {
	set    *problems.Set // nil means problems.Builtin
	bug    func(tool string, stack []byte)
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu  sync.Mutex
	all map[string]*matched // by the keys of the requests; guarded by mu
}

// NewMatching returns a Matching with these matchers. A nil set means the matchers of
// known tools, which take some MB and are compiled for the first request. bug, if not
// nil, is called for a panic that output has caused. The caller must Close the Matching.
func NewMatching(set *problems.Set, bug func(tool string, stack []byte)) *Matching {
	m := &Matching{set: set, bug: bug, all: map[string]*matched{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Close ends the matching and waits until its goroutines have ended.
func (m *Matching) Close() {
	m.cancel()
	m.done.Wait()
}

// matched is the state of one terminal for which there was a request. mu guards the other
// fields.
type matched struct {
	mu      sync.Mutex
	tracker *problems.Tracker
	from    int64              // offset at which the next reader begins
	masked  int                // number of masked places in the output
	unseen  int64              // bytes that were dropped before the first request, or later before they were read
	asked   time.Time          // time of the last request; zero once the terminal was forgotten
	begun   int64              // offset of the output of the newest command that the tracker was told of; -1 at first
	head    []byte             // first bytes of the output from there on
	running bool               // a goroutine reads the output
	started int                // number of rounds that have begun; a round reads all output that is available
	ended   int                // number of rounds that have ended
	moved   change.Signal      // raised when a round or the reading has ended
	wake    context.CancelFunc // ends the goroutine's wait for output; nil while it does not wait
	err     error              // why the reading has ended; nil while it goes on, and if the terminal has ended
	over    bool               // the terminal has ended and all its output was read
}

// entry returns the entry of a key. If there is none, it makes one, and room for it.
func (m *Matching) entry(key string, t Terminal) *matched {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.all[key]
	if e == nil {
		if len(m.all) >= maxMatched {
			m.forgetLocked()
		}
		i := t.Info()
		set := m.set
		if set == nil {
			set = problems.Builtin()
		}
		e = &matched{tracker: problems.NewTracker(set, i.Start), from: i.Start, unseen: i.Start, begun: -1}
		e.tracker.Begin(strings.Join(i.Command, " "), i.Cwd)
		m.all[key] = e
	}
	return e
}

func (m *Matching) forgetLocked() {
	var oldest string
	var at time.Time
	for key, e := range m.all {
		e.mu.Lock()
		if oldest == "" || e.asked.Before(at) {
			oldest, at = key, e.asked
		}
		e.mu.Unlock()
	}
	e := m.all[oldest]
	delete(m.all, oldest)
	e.mu.Lock()
	e.asked = time.Time{} // so its goroutine ends
	if e.wake != nil {
		e.wake()
	}
	e.mu.Unlock()
}

// Ask examines all output that is available now and returns the known problems that were
// printed after the offset since. There are at most max, or more if further ones come
// from the same line. key identifies the terminal and, if principals see different
// output, the principal. Ask blocks while it reads, until ctx ends.
func (m *Matching) Ask(ctx context.Context, key string, t Terminal, since int64, max int) (*ProblemsAnswer, error) {
	e, err := m.look(ctx, key, t)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	i := t.Info()
	a := &ProblemsAnswer{TerminalID: i.ID, Cursor: e.tracker.Cursor(), Dropped: e.tracker.Dropped(), Unseen: e.unseen, Masked: e.masked, Exited: i.Exit != nil, ExitFields: exitOf(i),
		Cleared: since > 0 && e.tracker.Cleared() >= since, Succeeded: e.tracker.Succeeded(), Unrecognised: e.tracker.Unrecognised()}
	for _, p := range e.tracker.Problems(0) {
		switch p.Severity {
		case problems.Error:
			a.Errors++
		case problems.Warning:
			a.Warnings++
		}
	}
	a.Problems = e.tracker.Problems(since)
	a.first(max)
	return a, nil
}

// look returns the entry once all output that is available now was examined.
func (m *Matching) look(ctx context.Context, key string, t Terminal) (*matched, error) {
	e := m.entry(key, t)
	e.mu.Lock()
	e.asked = time.Now()
	if !e.running && !e.over {
		rd, err := t.Read(e.from)
		if err != nil {
			e.mu.Unlock()
			return nil, err
		}
		e.running, e.err = true, nil
		m.done.Add(1)
		go func() {
			defer m.done.Done()
			defer rd.Close()
			defer m.survive(e)
			e.follow(m.ctx, t, rd)
		}()
	}
	for round := e.started; e.ended <= round && !e.over && e.running; {
		if e.wake != nil {
			e.wake()
		}
		moved := e.moved.Next()
		e.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		e.mu.Lock()
	}
	defer e.mu.Unlock()
	return e, e.err
}

// survive ends the matching of a terminal whose output caused a panic; its findings stay.
func (m *Matching) survive(e *matched) {
	if recover() == nil {
		return
	}
	if m.bug != nil {
		m.bug("problems", debug.Stack())
	}
	e.stop(ErrBug)
}

// follow reads the output in rounds until the last request is older than matchFor, the
// terminal ends or ctx ends.
func (e *matched) follow(ctx context.Context, t Terminal, rd Reader) {
	buf := make([]byte, 32<<10)
	for {
		wait, cancel, ok := e.round(ctx, t, rd, buf)
		if !ok {
			return
		}
		ev, err := rd.Next(wait, buf)
		cancel()
		if err != nil && wait.Err() == nil || ctx.Err() != nil {
			e.stop(err)
			return
		}
		if err == nil {
			e.take(t, ev)
		}
	}
}

// round reads the available output and signals that it has. It returns the context for
// the wait for more output, which ends at the next request, or when the last one is older
// than matchFor. The last result is false if no more is to be read.
func (e *matched) round(ctx context.Context, t Terminal, rd Reader, buf []byte) (context.Context, context.CancelFunc, bool) {
	e.mu.Lock()
	e.started++
	e.wake = nil
	e.mu.Unlock()
	for end := t.Info().End; ctx.Err() == nil; {
		ev, ok, err := rd.TryNext(buf)
		if err != nil {
			e.stop(err)
			return nil, nil, false
		}
		if !ok {
			break
		}
		if e.take(t, ev); ev.Off >= end && len(ev.Data) > 0 {
			break
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended++
	e.moved.Raise()
	left := matchFor - time.Since(e.asked)
	if left <= 0 || ctx.Err() != nil {
		e.running = false
		return nil, nil, false
	}
	wait, cancel := context.WithTimeout(ctx, left)
	e.wake = cancel
	return wait, cancel, true
}

// stop records that the reading has ended, and why.
func (e *matched) stop(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if errors.Is(err, io.EOF) {
		e.tracker.End()
		e.over, err = true, nil
	}
	e.running, e.wake, e.err = false, nil, err
	e.moved.Raise()
}

// take passes an event to the tracker.
func (e *matched) take(t Terminal, ev Event) {
	var commands []vocab.Command
	if len(ev.Data) > 0 {
		commands = t.Commands()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.from = ev.Off
	e.masked += ev.Masked
	switch {
	case ev.Lost > 0:
		e.unseen += ev.Lost
		e.tracker.Lost(ev.Lost)
	case ev.Dir != "":
		e.tracker.Dir(ev.Dir)
	case len(ev.Data) > 0:
		e.write(t, ev.Off-int64(len(ev.Data)), ev.Data, commands)
	}
}

// write passes bytes to the tracker, and tells it of the commands that begin in them.
func (e *matched) write(t Terminal, at int64, p []byte, commands []vocab.Command) {
	for _, c := range commands {
		if c.Start <= e.begun || c.Start >= at+int64(len(p)) {
			continue
		}
		e.begun = c.Start
		if n := c.Start - at; n > 0 {
			e.tracker.Write(at, p[:n])
			at, p = c.Start, p[n:]
		}
		e.tracker.Begin(c.Text(), "")
		e.head = nil
	}
	e.head = append(e.head, p[:min(len(p), 2*digestHead-len(e.head))]...)
	e.tracker.Write(at, p)
}
