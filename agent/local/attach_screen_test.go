package local_test

import (
	"strings"
	"testing"

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
