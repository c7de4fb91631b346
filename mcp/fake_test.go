package mcp_test

import (
	"context"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"tether/agenttools"
	"tether/vocab"
)

// fakeTerminals are the terminals of one principal. The test plays their children.
type fakeTerminals struct {
	mu      sync.Mutex
	all     []*fakeTerminal
	refuse  error         // the answer to Spawn, if not nil
	killing time.Duration // how long Kill takes
	owner   string        // of every port: a terminal's id; "" for not known
	unseen  []agenttools.UnseenPort
}

// add makes a terminal.
func (f *fakeTerminals) add(id string, owner agenttools.Owner) *fakeTerminal {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTerminal{changed: make(chan struct{}), info: agenttools.Info{
		ID: id, Cwd: "/project", Owner: owner, Visible: owner == agenttools.OwnerUser, CreatedAt: time.UnixMilli(1706234567890),
		Name: "sh", Title: "sh", Cols: 80, Rows: 24, Pid: 7,
	}}
	f.all = append(f.all, t)
	return t
}

// withTerminal has one terminal of the person's.
func withTerminal(id string) (*fakeTerminals, *fakeTerminal) {
	f := &fakeTerminals{}
	return f, f.add(id, agenttools.OwnerUser)
}

func (f *fakeTerminals) find(id string) (*fakeTerminal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.all {
		if t.info.ID == id {
			return t, nil
		}
	}
	return nil, agenttools.ErrNotFound
}

// own returns a terminal that the principal may change.
func (f *fakeTerminals) own(id string) (*fakeTerminal, error) {
	t, err := f.find(id)
	if err == nil && t.Info().Owner != agenttools.OwnerAgent {
		return nil, agenttools.ErrDenied
	}
	return t, err
}

func (f *fakeTerminals) List() []agenttools.Info {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []agenttools.Info
	for _, t := range f.all {
		out = append(out, t.Info())
	}
	return out
}

func (f *fakeTerminals) Open(id string) (agenttools.Terminal, error) { return f.find(id) }

// readOnly is the view of a host's agents.
type readOnly struct{ f *fakeTerminals }

func (r readOnly) List() []agenttools.Info                     { return r.f.List() }
func (r readOnly) Open(id string) (agenttools.Terminal, error) { return r.f.Open(id) }

func (f *fakeTerminals) Spawn(_ context.Context, r agenttools.SpawnRequest) (agenttools.Info, error) {
	if f.refuse != nil {
		return agenttools.Info{}, f.refuse
	}
	t := f.add("pty-xyz789", agenttools.OwnerAgent)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.info.Cwd, t.info.Command = r.Cwd, r.Command
	t.info.Port, _ = strconv.Atoi(r.Port)
	return t.info, nil
}

func (f *fakeTerminals) Promote(id string) (agenttools.Info, error) {
	t, err := f.own(id)
	if err != nil {
		return agenttools.Info{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.info.Owner, t.info.Visible = agenttools.OwnerUser, true
	return t.info, nil
}

func (f *fakeTerminals) Kill(ctx context.Context, id string) error {
	t, err := f.own(id)
	if err != nil {
		return err
	}
	select {
	case <-time.After(f.killing):
	case <-ctx.Done():
		return ctx.Err()
	}
	t.exit(vocab.Exit{Code: 137, Signal: "SIGKILL", Reason: "killed", At: time.UnixMilli(1706234569000)})
	return nil
}

func (f *fakeTerminals) Listens(id string, _ int) (yes, known bool) {
	return id == f.owner, f.owner != ""
}

func (f *fakeTerminals) Reach(int, bool) ([]string, error) { return agenttools.Loopbacks(), nil }

func (f *fakeTerminals) PortUsers(ports []int) map[int]string {
	users := map[int]string{}
	for _, port := range ports {
		users[port] = f.owner
	}
	return users
}

func (f *fakeTerminals) Unseen() []agenttools.UnseenPort { return slices.Clone(f.unseen) }

func (f *fakeTerminals) Write(ctx context.Context, id string, p []byte) error {
	t, err := f.own(id)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.info.Exit != nil {
		return agenttools.ErrExited
	}
	t.typed += string(p)
	return nil
}

func (f *fakeTerminals) Signal(id, name string) error {
	t, err := f.own(id)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.signal = name
	return nil
}

// fakeTerminal keeps its output as a list of events.
type fakeTerminal struct {
	mu       sync.Mutex
	info     agenttools.Info
	events   []agenttools.Event // in order; Off is after each
	base     int                // how many were dropped before them
	commands []vocab.Command
	typed    string
	signal   string
	changed  chan struct{} // closed and replaced at each event
	readers  int           // open ones
}

// maxEvents is how many events a terminal keeps.
const maxEvents = 20_000

func (t *fakeTerminal) add(ev agenttools.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.info.End += int64(len(ev.Data))
	ev.Off = t.info.End
	t.events = append(t.events, ev)
	if n := len(t.events) - maxEvents; n > maxEvents { // as a log that is full does
		t.info.Start = t.events[n-1].Off
		t.events = slices.Clone(t.events[n:])
		t.base += n
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// hide adds n bytes to the stream that no reader gets, like a shell's marks.
func (t *fakeTerminal) hide(n int64) {
	t.mu.Lock()
	t.info.End += n
	t.mu.Unlock()
	t.add(agenttools.Event{})
}

func (t *fakeTerminal) print(s string) { t.add(agenttools.Event{Data: []byte(s)}) }

func (t *fakeTerminal) exit(e vocab.Exit) {
	t.mu.Lock()
	over := t.info.Exit != nil
	if !over {
		t.info.Exit = &e
	}
	t.mu.Unlock()
	if !over {
		t.add(agenttools.Event{Exited: true})
	}
}

// drop forgets the output before an offset.
func (t *fakeTerminal) drop(before int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.info.Start = before
}

func (t *fakeTerminal) finish(c vocab.Command) {
	t.mu.Lock()
	t.info.Detection, t.info.Running = true, ""
	t.commands = slices.DeleteFunc(t.commands, func(old vocab.Command) bool { return old.Running && old.N == c.N })
	t.commands = append(t.commands, c)
	t.mu.Unlock()
	t.add(agenttools.Event{Finished: &c})
}

func (t *fakeTerminal) Info() agenttools.Info {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.info
}

func (t *fakeTerminal) Commands() []vocab.Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.commands)
}

func (t *fakeTerminal) open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readers
}

func (t *fakeTerminal) Read(from int64) (agenttools.Reader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers++
	r := &fakeReader{t: t, pos: from, next: t.base}
	for i := range t.events {
		if ev := &t.events[i]; ev.Off > from || ev.Off == from && len(ev.Data) == 0 {
			break
		}
		r.next++
	}
	return r, nil
}

type fakeReader struct {
	t    *fakeTerminal
	pos  int64
	next int
}

func (r *fakeReader) TryNext(buf []byte) (agenttools.Event, bool, error) {
	if len(buf) < 64 {
		return agenttools.Event{}, false, io.ErrShortBuffer
	}
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.pos < t.info.Start {
		ev := agenttools.Event{Lost: t.info.Start - r.pos, Off: t.info.Start}
		r.pos = t.info.Start
		r.next = max(r.next, t.base)
		for r.next < t.base+len(t.events) && t.events[r.next-t.base].Off <= r.pos {
			r.next++
		}
		return ev, true, nil
	}
	if r.next == t.base+len(t.events) {
		if t.info.Exit != nil {
			return agenttools.Event{}, false, io.EOF
		}
		return agenttools.Event{}, false, nil
	}
	ev := t.events[r.next-t.base]
	if len(ev.Data) > 0 {
		rest := ev.Data[int64(len(ev.Data))-(ev.Off-r.pos):]
		n := copy(buf, rest)
		r.pos += int64(n)
		if n == len(rest) {
			r.next++
		}
		return agenttools.Event{Data: buf[:n], Off: r.pos}, true, nil
	}
	r.next++
	r.pos = ev.Off
	return ev, true, nil
}

func (r *fakeReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	for {
		r.t.mu.Lock()
		changed := r.t.changed
		r.t.mu.Unlock()
		ev, ok, err := r.TryNext(buf)
		if ok || err != nil {
			return ev, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return agenttools.Event{}, ctx.Err()
		}
	}
}

func (r *fakeReader) Close() {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	r.t.readers--
}

// sentence is a refusal by the policy.
type sentence string

func (s sentence) Error() string { return string(s) }
