package host_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tether/ahp"
	"tether/host"
	"tether/host/shells"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// fakeRunner runs processes that echo their input and end at "exit".
type fakeRunner struct {
	mu    sync.Mutex
	procs map[string]*fakeProcess
	fail  error
}

func (r *fakeRunner) Start(_ context.Context, t shells.Request) (shells.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return nil, r.fail
	}
	p := &fakeProcess{asked: t, events: make(chan shells.Event, 1000), killed: make(chan struct{})}
	r.procs[t.URI] = p
	return p, nil
}

type fakeProcess struct {
	asked  shells.Request
	events chan shells.Event
	killed chan struct{}
	once   sync.Once
	front  atomic.Pointer[string] // the program that runs in it
}

func (p *fakeProcess) Next(ctx context.Context) (shells.Event, error) {
	select {
	case ev, ok := <-p.events:
		if !ok {
			return shells.Event{}, io.EOF
		}
		return ev, nil
	case <-p.killed:
		return shells.Event{}, io.EOF
	case <-ctx.Done():
		return shells.Event{}, ctx.Err()
	}
}

func (p *fakeProcess) Input(text string) error {
	if text == "jam" {
		return errors.New("input queue is full")
	}
	p.events <- shells.Event{Text: []byte(text)}
	if text == "exit" {
		zero := int64(0)
		p.events <- shells.Event{Action: ahp.TerminalExited{ExitCode: &zero}}
		close(p.events)
	}
	return nil
}

func (p *fakeProcess) Resize(cols, rows int) error { return nil }

func (p *fakeProcess) Kill() { p.once.Do(func() { close(p.killed) }) }

func serverTerminal(uri, owner string) ahp.CreateTerminalParams {
	return ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim(owner), Name: "shell"}
}

func TestServerExecutedTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{procs: map[string]*fakeProcess{}}
		h := testHost(t, host.Options{Runner: runner})
		v := connect(t, h, "typist", viewOptions{subs: []string{ahp.RootURI}})
		other := connect(t, h, "other", viewOptions{})
		must.Do(t, v.call(ahp.MethodCreateTerminal, serverTerminal(uri, "typist"), nil))
		if got := runner.procs[uri].asked; got.Cols != 80 || got.Rows != 24 || got.Name != "shell" {
			t.Errorf("started %+v, want 80×24", got)
		}
		for _, viewer := range []*viewer{v, other} {
			must.Do(t, viewer.subscribe(uri))
		}
		if st := other.state(uri); st.ExecutionTarget != ahp.TargetServer || !st.Claim.HeldBy("typist") {
			t.Errorf("state %+v", st)
		}
		if e := v.answer(v.dispatch(uri, ahp.TerminalInput{Data: "ls\r"})); e.Rejected() {
			t.Errorf("input of the holder is refused: %s", *e.RejectionReason)
		}
		other.awaitText(uri, "ls\r")
		seen, _ := other.received()
		for _, e := range seen {
			if strings.Contains(string(e.Action), ahp.ActionTerminalInput) {
				t.Errorf("what was typed is shown to others: %s", e.Action)
			}
		}
		for _, a := range []ahp.Action{ahp.TerminalInput{Data: "x"}, ahp.TerminalClaimed{Claim: ahp.ClientClaim("other")},
			ahp.TerminalOutput{Data: "x"}, ahp.TerminalExited{}, ahp.TerminalCwdChanged{Cwd: "/"}, ahp.TerminalResized{Cols: 0, Rows: 5}} {
			if e := other.answer(other.dispatch(uri, a)); !e.Rejected() {
				t.Errorf("%s of another client is accepted", a.Type())
			}
		}
		if e := v.answer(v.dispatch(uri, ahp.TerminalInput{Data: "jam"})); !e.Rejected() || !strings.Contains(*e.RejectionReason, "full") {
			t.Errorf("input that does not fit: %+v", e)
		}
		for _, a := range []ahp.Action{ahp.TerminalResized{Cols: 100, Rows: 40}, ahp.TerminalTitleChanged{Title: "t"}, ahp.TerminalCleared{}} {
			if e := other.answer(other.dispatch(uri, a)); e.Rejected() {
				t.Errorf("%s is refused: %s", a.Type(), *e.RejectionReason)
			}
		}
		if e := v.answer(v.dispatch(uri, ahp.TerminalClaimed{Claim: ahp.ClientClaim("other")})); e.Rejected() {
			t.Errorf("giving the claim away is refused: %s", *e.RejectionReason)
		}
		other.dispatch(uri, ahp.TerminalInput{Data: "exit"})
		v.await("the exit", func() bool { l := v.states[uri].Lifecycle; return l.Exited() && *l.ExitCode == 0 })
		v.await("the exit in the list", func() bool { return v.root.Terminals[0].Lifecycle.Exited() })
		compareFresh(t, h, v)
	})
}

func TestServerExecutedTerminalOutlivesItsClientAndEndsByDisposal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{procs: map[string]*fakeProcess{}}
		h := testHost(t, host.Options{Runner: runner})
		first := connect(t, h, "first", viewOptions{})
		must.Do(t, first.call(ahp.MethodCreateTerminal, serverTerminal(uri, "first"), nil))
		if err := first.call(ahp.MethodCreateTerminal, serverTerminal(uri, "first"), nil); code(err) != ahp.CodeAlreadyExists {
			t.Errorf("creating twice: %v", err)
		}
		first.close()
		second := connect(t, h, "second", viewOptions{subs: []string{uri}})
		if second.state(uri).Lifecycle.Exited() {
			t.Error("it has exited with its client")
		}
		must.Do(t, second.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil))
		<-runner.procs[uri].killed
		second.await("the exit", func() bool { return second.states[uri].Lifecycle.Exited() })
		runner.fail = errors.New("no shell in /secret/place")
		err := second.call(ahp.MethodCreateTerminal, serverTerminal(uri, "second"), nil)
		if code(err) != -32603 || strings.Contains(err.Error(), "/secret") {
			t.Errorf("a shell that does not start: %v", err)
		}
	})
}

func TestServerExecutedFloodIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{procs: map[string]*fakeProcess{}}
		h := testHost(t, host.Options{Runner: runner})
		v := connect(t, h, "first", viewOptions{})
		must.Do(t, v.call(ahp.MethodCreateTerminal, serverTerminal(uri, "first"), nil))
		must.Do(t, v.subscribe(uri))
		p := runner.procs[uri]
		pieces := testkit.Load(900, 200)
		for range pieces {
			p.events <- shells.Event{Text: []byte(strings.Repeat("x", 16<<10))}
		}
		p.events <- shells.Event{Text: []byte("the end")}
		v.forget()
		v.awaitText(uri, "the end")
		if got, want := len(v.textOf(uri)), pieces*16<<10+len("the end"); got != want {
			t.Errorf("got %d bytes of %d", got, want)
		}
	})
}
