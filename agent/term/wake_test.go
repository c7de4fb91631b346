package term_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"tether/agent/output"
	"tether/agent/term"
)

func TestReadersShareAWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		other, g, _ := start(t, term.Options{}, term.Spec{})
		wake := make(chan struct{}, 1)
		a := reader(t, h, output.ReaderOptions{Wake: wake})
		b := reader(t, other, output.ReaderOptions{Wake: wake})
		for _, c := range []struct {
			print func(string)
			r     *output.Reader
		}{{f.Print, a}, {g.Print, b}} {
			if a.Ready(1) != wake || b.Ready(1) != wake {
				t.Fatal("Ready returns another channel")
			}
			synctest.Wait()
			select {
			case <-wake:
				t.Fatal("woken by nothing")
			default:
			}
			c.print("ä\x1b[c?")
			<-wake
			if got := events(t, c.r); len(got) != 1 || got[0].Data != "ä?" {
				t.Errorf("read %v", got)
			}
			if c.r.Offset() != 3 {
				t.Errorf("stands at %d, want 3: what its view leaves out does not count", c.r.Offset())
			}
		}
		if r := reader(t, h, output.ReaderOptions{Tail: -1}); r.Offset() != 3 {
			t.Errorf("a new reader at the end stands at %d, want 3", r.Offset())
		}
	})
}

func TestTerminalByItsWholeID(t *testing.T) {
	h, _, pool := start(t, term.Options{}, term.Spec{Private: true, Name: "n"})
	id := h.ID()
	for _, c := range []struct {
		who   term.Actor
		id    term.ID
		found bool
	}{
		{term.User, id, true},
		{term.User, id[:len(id)-1], false},
		{term.User, "n", false},
		{term.User, "", false},
		{term.Agent("a"), id, false},
	} {
		got, err := pool.As(c.who).Terminal(c.id)
		if c.found != (err == nil) || c.found && got.ID() != id || err != nil && !errors.Is(err, term.ErrNotFound) {
			t.Errorf("%s looks for %q: %v", c.who, c.id, err)
		}
	}
}
