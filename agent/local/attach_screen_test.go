package local_test

import (
	"strings"
	"testing"
	"time"

	"tether/agent/local"
	"tether/agent/term"
	"tether/screen"
)

// Who attaches late sees the whole screen of a full-screen program, and then what it prints next, once.
func TestAttachDrawsTheScreen(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 256 << 10})
	m, child := w.spawn("counter")
	counter(child, 20_000)
	a := w.attach(m.ID, local.AttachOptions{Tail: 4 << 10, Screen: true})
	child.Print("\r\nlast")
	s := screen.NewState(80, 24)
	for !strings.HasSuffix(s.Text(), "last") {
		msg, err := a.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Write(msg.Data)
	}
	if got, want := s.Text(), "THE HEADER\n\n\ncounter 19999\nlast"; got != want {
		t.Errorf("it sees %q, want %q", got, want)
	}
	plain, lines := w.spawn("plain")
	lines.Print(strings.Repeat("a line\r\n", 4000))
	b := w.attach(plain.ID, local.AttachOptions{Tail: 4 << 10, Screen: true})
	if msg, err := b.Next(t.Context()); err != nil || strings.Contains(string(msg.Data), "\x1b") {
		t.Errorf("of plain lines it gets %.40q, %v; want them alone", msg.Data, err)
	}
}

// Who has missed output because they did not read it gets the whole screen of a full-screen program again, whatever theirs shows.
func TestAttachRedrawsAfterALoss(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 64 << 10, Stall: time.Millisecond})
	m, child := w.spawn("counter")
	child.Print("before\r\n")
	a := w.attach(m.ID, local.AttachOptions{Tail: 4 << 10, Screen: true})
	counter(child, 600_000) // more than sockets hold
	child.Print("\r\nlast")
	s := screen.NewState(80, 24)
	s.Write([]byte("\x1b[5;1Hof another time\x1b[2;3r\x1b[?6h\x1b[4h\x1b]0;half"))
	lost := false
	for !lost || !strings.HasSuffix(s.Text(), "last") {
		msg, err := a.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lost = lost || msg.Control != nil && msg.Control.Type == local.ControlLagged
		if lost {
			s.Write(msg.Data)
		}
	}
	if got, want := s.Text(), "THE HEADER\n\n\ncounter 599999\nlast"; got != want {
		t.Errorf("it sees %q, want %q", got, want)
	}
}
