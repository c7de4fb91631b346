package agenttools

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/internal/change"
	"tether/problems"
)

const (
	// matchFor is how long new output is matched after a request.
	matchFor = 10 * time.Minute
	// maxMatched bounds the terminals whose problems are remembered. Of more, the one that nobody has asked about for longest is forgotten.
	maxMatched = 64
)

// Matching finds problems in the terminals that somebody asks about. It matches nothing before the first request, continues for ten minutes
// after the last one, and remembers its findings when the output is gone. It is safe for concurrent use.
type Matching struct {
	set    *problems.Set // nil: problems.Builtin
	bug    func(tool string, stack []byte)
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu  sync.Mutex
	all map[string]*matched // by the keys of the requests
}

// NewMatching returns a Matching with these matchers; nil means those of known tools, which take some MB and are compiled for the first
// request. bug, if not nil, receives panics caused by output. The caller must Close it.
func NewMatching(set *problems.Set, bug func(tool string, stack []byte)) *Matching {
	m := &Matching{set: set, bug: bug, all: map[string]*matched{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Close ends the matching and waits until it has.
func (m *Matching) Close() {
	m.cancel()
	m.done.Wait()
}

// matched is one terminal that somebody has asked about.
type matched struct {
	mu      sync.Mutex
	tracker *problems.Tracker
	from    int64 // the offset to go on from
	masked  int   // places of the output that were masked
	unseen  int64 // bytes that were gone before the first question, and later
	asked   time.Time
	begun   int64  // offset of the command that was begun last
	head    []byte // the first bytes of the output since
	running bool   // a goroutine has the reader
	started int    // rounds of reading all that is there
	ended   int
	moved   change.Signal      // a round has ended
	wake    context.CancelFunc // ends the waiting of the goroutine, nil if it does not wait
	err     error              // why there is no more to read, nil at the end of the terminal
	over    bool
}

// entry returns the entry of a key, and makes room for a new one.
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
	e.asked = time.Time{} // its goroutine ends
	if e.wake != nil {
		e.wake()
	}
	e.mu.Unlock()
}

// Ask returns the problems that are known once all present output has been examined: at most max that were printed after the offset since.
// key identifies the terminal and, if views differ, the principal. It blocks while it looks, until ctx ends.
func (m *Matching) Ask(ctx context.Context, key string, t Terminal, since int64, max int) (*ProblemsAnswer, error) {
	e, err := m.look(ctx, key, t)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	i := t.Info()
	a := &ProblemsAnswer{TerminalID: i.ID, Cursor: e.tracker.Cursor(), Dropped: e.tracker.Dropped(), Unseen: e.unseen, Masked: e.masked, Exited: i.Exit != nil, ExitFields: exitOf(i),
		Cleared: since > 0 && e.tracker.Cleared() >= since}
	for _, p := range e.tracker.Problems(0) {
		switch p.Severity {
		case problems.Error:
			a.Errors++
		case problems.Warning:
			a.Warnings++
		}
	}
	a.Problems = e.tracker.Problems(since)
	if len(a.Problems) > max {
		slices.SortStableFunc(a.Problems, func(p, q problems.Problem) int { return int(p.Last - q.Last) })
		for max < len(a.Problems) && a.Problems[max].Last == a.Problems[max-1].Last {
			max++ // of one line: the cursor stands between lines
		}
		a.More = max < len(a.Problems)
		a.Problems = a.Problems[:max]
		if a.More {
			a.Cursor = a.Problems[max-1].Last
		}
	}
	return a, nil
}

// look returns the entry when all output that is there now has been looked at.
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

// follow reads all that is there, again and again, until nobody has asked for matchFor, the terminal ends or ctx does.
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

// round reads available output and signals that. The context ends when somebody asks, or nobody has for long enough.
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

// stop notes that the reader has no more.
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

// take has the tracker look at an event.
func (e *matched) take(t Terminal, ev Event) {
	var commands []Command
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

// write has the tracker look at bytes, and tells it of the commands that begin in them.
func (e *matched) write(t Terminal, at int64, p []byte, commands []Command) {
	for _, c := range commands {
		if c.Start <= e.begun || c.Start >= at+int64(len(p)) {
			continue
		}
		e.begun = c.Start
		if n := c.Start - at; n > 0 {
			e.tracker.Write(at, p[:n])
			at, p = c.Start, p[n:]
		}
		e.tracker.Begin(c.Line, "")
		e.head = nil
	}
	e.head = append(e.head, p[:min(len(p), 2*digestHead-len(e.head))]...)
	e.tracker.Write(at, p)
}
