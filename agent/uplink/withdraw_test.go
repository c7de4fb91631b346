package uplink_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/ahp"
	"tether/host"
)

func unlend(t *testing.T, h term.Handle) {
	t.Helper()
	if err := h.Unlend("lab"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// A host tells everyone of a disposal, also of the one that we asked for.
// When the person lends the terminal again in that moment, it must not be
// taken for a disposal by somebody else.
func TestUnlendAndLendAgainDoesNotKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient}
		w := fakeWorld(t, f, literal)
		h, child := w.spawn(term.Spec{})
		child.Print("one ")
		synctest.Wait()
		before := f.uri(t)
		answer := f.delay(ahp.MethodDisposeTerminal)
		unlend(t, h)
		if err := h.Lend("lab"); err != nil {
			t.Fatal(err)
		}
		code := int64(-1)
		f.say(t, before, ahp.TerminalExited{ExitCode: &code})
		answer()
		child.Print("two")
		synctest.Wait()
		if child.Killed() || h.Info().Exit != nil {
			t.Fatal("the child was killed")
		}
		if alive := f.living(); len(alive) != 1 || f.text[alive[0]] != "one two" {
			t.Errorf("the host has %v with %q, want one terminal with everything", alive, f.text)
		}
	})
}

// Between the announcement and its answer a terminal exists at the host
// already; what is withdrawn then must not stay there.
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

// What is printed right after Unlend has returned is not sent, even if the link has not heard of it yet.
func TestNothingIsSentAfterUnlendHasReturned(t *testing.T) {
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeHost{target: ahp.TargetClient}
			w := fakeWorld(t, f, literal)
			h, child := w.spawn(term.Spec{})
			child.Print("public")
			synctest.Wait()
			if err := h.Unlend("lab"); err != nil {
				t.Fatal(err)
			}
			child.Print("secret")
			synctest.Wait()
			if got := f.text[f.uri(t)]; got != "public" {
				t.Fatalf("round %d: the host has %q", round, got)
			}
			if err := h.Lend("lab"); err != nil {
				t.Fatal(err)
			}
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
			if err := errors.Join(h.Unlend("lab"), h.Lend("lab")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := text(w.only()); !strings.HasPrefix(got, "0\n1\n") || !strings.HasSuffix(got, "18\n19\n") {
			t.Errorf("text %q", got)
		}
	})
}

// Who unpairs waits until the host has nothing any more, not only until the link has begun to see to it.
func TestStatusCountsWhatTheHostMayHave(t *testing.T) {
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

// A host that takes its time to remove one terminal must not keep another
// one in sight.
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
		child.Print("secret")
		synctest.Wait()
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
