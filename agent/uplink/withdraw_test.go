package uplink_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

func unlend(t *testing.T, h term.Handle) {
	t.Helper()
	must.Do(t, h.Unlend("lab"))
	synctest.Wait()
}

// A host tells everyone of a disposal, even of one that we requested. When the person
// lends the terminal again in that moment, it must not be taken for a disposal by another
// client.
func TestUnlendAndLendAgainDoesNotKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		h, child := w.spawn(term.Spec{})
		prints(child, "one ")
		before := f.uri(t)
		answer := f.delay(ahp.MethodDisposeTerminal)
		unlend(t, h)
		must.Do(t, h.Lend("lab"))
		code := int64(-1)
		f.say(t, before, ahp.TerminalExited{ExitCode: &code})
		answer()
		prints(child, "two")
		if child.Killed() || h.Info().Exit != nil {
			t.Fatal("the child was killed")
		}
		if alive := f.living(); len(alive) != 1 || f.text[alive[0]] != "one two" {
			t.Errorf("the host has %v with %q, want one terminal with everything", alive, f.text)
		}
	})
}

// lostHolder keeps a silent child, and its meta, while connections to it come and go.
type lostHolder struct {
	mu     sync.Mutex
	meta   []byte
	killed bool
}

func (h *lostHolder) kept() (meta []byte, killed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.meta, h.killed
}

// holderWire is a connection to it.
type holderWire struct {
	h    *lostHolder
	once sync.Once
	lost chan struct{} // closed when it has ended
}

func (h *lostHolder) dial() *holderWire { return &holderWire{h: h, lost: make(chan struct{})} }

func (w *holderWire) lose() { w.once.Do(func() { close(w.lost) }) }

func (w *holderWire) Read([]byte) (int, error)       { <-w.lost; return 0, io.EOF }
func (w *holderWire) WaitReadable() error            { <-w.lost; return nil }
func (w *holderWire) Write(p []byte) (int, error)    { return len(p), nil }
func (w *holderWire) Resize(term.Size) error         { return nil }
func (w *holderWire) Wait() pty.Exit                 { <-w.lost; return pty.Exit{} }
func (w *holderWire) Pid() int                       { return 1 }
func (w *holderWire) Close() error                   { w.lose(); return nil }
func (w *holderWire) StreamFrom(int64) error         { return nil }
func (w *holderWire) ExitedAt() (time.Time, int64)   { return time.Time{}, 0 }
func (w *holderWire) Gone() bool                     { _, killed := w.h.kept(); return killed }
func (w *holderWire) Checkpoint(int64, []byte) error { return nil }
func (w *holderWire) Keep(int64) error               { return nil }
func (w *holderWire) Forget(context.Context) error   { w.lose(); return nil }

func (w *holderWire) SetMeta(p []byte) error {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	w.h.meta = slices.Clone(p)
	return nil
}

func (w *holderWire) Kill(context.Context, time.Duration) error {
	locked(&w.h.mu, func() { w.h.killed = true })
	w.lose()
	return nil
}

// adopt has the pool take the terminal up again.
func (h *lostHolder) adopt(t *testing.T, w *world, was term.Handle) {
	t.Helper()
	meta, _ := h.kept()
	past := term.Past{ID: was.ID(), Started: time.Now(), Meta: meta, Log: output.Past{Size: was.Info().Size, Window: 64}}
	must.Do(t, w.pool.Adopt(t.Context(), h.dial(), past))
	synctest.Wait()
}

// A terminal whose holder was lost for a moment is withdrawn and lent again. The host's
// echo of the end that we requested kills nothing.
func TestAHolderThatIsMetAgainKillsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		keeper := &lostHolder{}
		first := keeper.dial()
		locked(&w.mu, func() { w.wrap = func(*testkit.Child) term.PTY { return first } })
		h, _ := w.spawn(term.Spec{})
		before := f.uri(t)
		time.Sleep(time.Hour) // nothing is a late loss any more
		answer := f.delay(ahp.MethodDisposeTerminal)
		first.lose()
		synctest.Wait()
		keeper.adopt(t, w, h)
		code := int64(-1)
		f.say(t, before, ahp.TerminalExited{ExitCode: &code})
		answer()
		time.Sleep(time.Minute)
		if _, killed := keeper.kept(); killed {
			t.Fatal("the child was killed")
		}
		if alive := f.living(); len(alive) != 1 || alive[0] == before {
			t.Errorf("the host has %v, want another one than %s", alive, before)
		}
	})
}

// The same while the link is down: it goes on with the terminal that there is now.
func TestAHolderThatIsMetAgainWhileTheLinkIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		keeper := &lostHolder{}
		first := keeper.dial()
		locked(&w.mu, func() { w.wrap = func(*testkit.Child) term.PTY { return first } })
		h, _ := w.spawn(term.Spec{})
		w.cut(true)
		first.lose()
		synctest.Wait()
		keeper.adopt(t, w, h)
		w.up()
		now := must.Get(w.pool.As(term.User).Terminal(h.ID()))(t)
		check.OK(t, now.Kill(t.Context()))
		time.Sleep(time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, told := f.exited[f.created[len(f.created)-1]]; !told {
			t.Errorf("the host was not told of the exit; it has %v", f.created)
		}
	})
}

// Between the announcement and its answer a terminal exists at the host already; one
// withdrawn then must not stay there.
func TestUnlendDuringTheAnnouncementLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		answer := f.delay(ahp.MethodCreateTerminal)
		h, child := w.spawn(term.Spec{})
		unlend(t, h)
		answer()
		child.Print("secret")
		time.Sleep(time.Minute)
		if alive := f.living(); len(alive) != 0 || len(f.text) != 0 {
			t.Errorf("the host has %v with %q after unlend, want nothing", alive, f.text)
		}
	})
}

// Output right after Unlend has returned is not sent, even if the link does not know of
// it yet.
func TestNothingIsSentAfterUnlendHasReturned(t *testing.T) {
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeHost{target: ahp.TargetClient}
			w := fakeWorld(t, f, literal)
			h, child := w.spawn(term.Spec{})
			prints(child, "public")
			must.Do(t, h.Unlend("lab"))
			prints(child, "secret")
			if got := f.text[f.uri(t)]; got != "public" {
				t.Fatalf("round %d: the host has %q", round, got)
			}
			must.Do(t, h.Lend("lab"))
			synctest.Wait()
			if got := f.text[f.uri(t)]; got != "publicsecret" {
				t.Fatalf("lent again, the host has %q", got)
			}
		})
	}
}

// Withdrawn and lent again before the link has looked: it goes on.
func TestUnlendAndLendInOneGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		h, child := w.spawn(term.Spec{})
		for i := range 20 {
			child.Print(fmt.Sprintln(i))
			must.Do(t, errors.Join(h.Unlend("lab"), h.Lend("lab")))
		}
		synctest.Wait()
		if got := text(w.only()); !strings.HasPrefix(got, "0\n1\n") || !strings.HasSuffix(got, "18\n19\n") {
			t.Errorf("text %q", got)
		}
	})
}

// Withdrawn and lent again while the link is about to look, it is not forgotten.
func TestUnlendAndLendWhileTheLinkLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		h, child := w.spawn(term.Spec{})
		for round := range testkit.Load(1000, 100) {
			must.Do(t, h.Unlend("lab"))
			for range round % 40 {
				runtime.Gosched()
			}
			must.Do(t, h.Lend("lab"))
			synctest.Wait()
			line := fmt.Sprintf("round %d\r\n", round)
			child.Print(line)
			time.Sleep(100 * time.Millisecond)
			f.mu.Lock()
			got := f.text[f.created[len(f.created)-1]]
			f.text = map[string]string{}
			f.mu.Unlock()
			if !strings.HasSuffix(got, line) {
				t.Fatalf("round %d: the host has %.60q", round, got)
			}
		}
	})
}

// Who unpairs waits until the host has nothing any more, not only until the link has
// begun to see to it.
func TestStatusCountsTerminalsAtTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		first, _ := w.spawn(term.Spec{})
		second, child := w.spawn(term.Spec{})
		child.End(0)
		synctest.Wait()
		known := func(when string, want int) {
			t.Helper()
			if got := w.link.Status().Known; got != want {
				t.Errorf("%s: the host may have %d terminals, want %d", when, got, want)
			}
		}
		known("a running and an exited one", 2)
		answer := f.delay(ahp.MethodDisposeTerminal)
		unlend(t, first)
		unlend(t, second)
		known("while they are withdrawn", 2)
		answer()
		known("when that was answered", 0)
	})
}

// A host that takes its time to remove one terminal must not keep another one in sight.
func TestUnlendDoesNotWaitForAnotherWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		first, _ := w.spawn(term.Spec{})
		second, child := w.spawn(term.Spec{})
		uri := f.uri(t)
		answer := f.delay(ahp.MethodDisposeTerminal)
		defer answer()
		unlend(t, first)
		unlend(t, second)
		prints(child, "secret")
		if f.text[uri] != "" || len(f.disposed) != 2 {
			t.Errorf("after unlend %q was sent; disposed of %v, want both", f.text[uri], f.disposed)
		}
	})
}

// A withdrawal that the end of the connection interrupts is made up for.
func TestAWithdrawalSurvivesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: ahp.NewClientTerminals(30000).Meta()}
		w := fakeWorld(t, f, nil)
		h, _ := w.spawn(term.Spec{})
		answer := f.delay(ahp.MethodDisposeTerminal)
		unlend(t, h)
		f.mu.Lock()
		f.disposed = nil // the request got lost
		f.mu.Unlock()
		w.cut(false)
		answer()
		w.online()
		synctest.Wait()
		if alive := f.living(); len(alive) != 0 {
			t.Errorf("the host still has %v", alive)
		}
	})
}
