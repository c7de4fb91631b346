package local_test

import (
	"bytes"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
)

// A person is told who can watch even while the terminal prints without a pause: most is seen then.
func TestLendingsAreReportedInAFlood(t *testing.T) {
	const ahead, most = 1 << 20, 32 << 20 // bytes
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("a")
	line := append(bytes.Repeat([]byte("x"), 78), "\r\n"...)
	print := func(n int) { child.Print(string(bytes.Repeat(line, n/len(line)+1))) }
	print(ahead)
	a := w.attach("a", local.AttachOptions{FromStart: true})
	h, err := w.pool.As(term.User).Find(tm.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Lend("lab"); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < most; {
		m, err := a.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if m.Control != nil && m.Control.Type == local.ControlLent {
			if len(m.Control.Hosts) != 1 || m.Control.Hosts[0] != "lab" {
				t.Errorf("it is said that it is lent to %v", m.Control.Hosts)
			}
			return
		}
		n += len(m.Data)
		print(len(m.Data))
	}
	t.Errorf("after %d bytes nothing is said of the lending", most)
}
