package term_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/redact"
	"tether/agent/term"
)

// takes returns what a reader in the background gets now, and what it has lost.
func takes(t *testing.T, r *output.Reader) (text string, lost int64) {
	t.Helper()
	var b strings.Builder
	for buf := make([]byte, 4096); ; {
		ev, ok, err := r.TryNext(buf)
		lagged, isLag := errors.AsType[*output.LaggedError](err)
		switch {
		case isLag:
			lost += lagged.Lost
		case err != nil || !ok:
			return b.String(), lost
		}
		b.Write(ev.Data)
	}
}

// A reader in the background reads what a host would, and nothing is examined for it
// before it reads. It keeps no output from being dropped.
func TestBackgroundReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := redacted(t, redact.Options{Tokens: true})
		o.LogBytes = 64 << 10
		h, f, _ := start(t, o, term.Spec{Env: secretEnv})
		wake := make(chan struct{}, 1)
		r := reader(t, h.Masked(), output.ReaderOptions{Background: true, Hold: true, Wake: wake})
		r.Ready(1)
		prints(f, "one "+value+" two\r\n")
		select {
		case <-wake:
		default:
			t.Error("it is not woken")
		}
		masked := strings.Repeat("*", len(value))
		if got, _ := takes(t, r); got != "one "+masked+" two\r\n" {
			t.Errorf("got %q", got)
		}
		prints(f, "part "+value[:5])
		time.Sleep(time.Second)
		if got, _ := takes(t, r); got != "part *****" {
			t.Errorf("a part of a secret is held back for ever: %q", got)
		}
		const line = "0123456789 0123456789 0123456789 0123456789 0123456789 01234567\n"
		for range 10 {
			prints(f, strings.Repeat(line, 256))
		}
		if i := h.Info(); i.Retained > 64<<10 {
			t.Errorf("%d bytes are kept for it", i.Retained)
		}
		got, lost := takes(t, r)
		if int(lost)+len(got) != 10*256*len(line) || strings.Trim(got, "0123456789 \n") != "" || !strings.HasPrefix(got, "0123") {
			t.Errorf("%d bytes were lost and %d are there of %d", lost, len(got), 10*256*len(line))
		}
		prints(f, strings.Repeat(line, 100)+value+"\n"+line)
		lag := r.Skip(100)
		if got, _ := takes(t, r); lag == nil || lag.Lost != int64(99*len(line)+len(line)) || got != masked+"\n"+line {
			t.Errorf("after a jump over %+v: %q", lag, got)
		}
		if r.Skip(100) != nil {
			t.Error("it jumps without need")
		}
	})
}

// When a terminal is lent, and withdrawn a while later, a reader in the background loses
// nothing and repeats nothing.
func TestBackgroundReaderOfALentTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, redacted(t, redact.Options{Tokens: true}), term.Spec{Env: secretEnv})
		r := reader(t, h.Masked(), output.ReaderOptions{Background: true})
		var all strings.Builder
		read := func() {
			text, lost := takes(t, r)
			if all.WriteString(text); lost > 0 {
				t.Errorf("%d bytes are lost", lost)
			}
		}
		prints(f, "before "+value+"\r\n")
		if err := h.Lend("lab"); err != nil {
			t.Fatal(err)
		}
		if l, ok := h.Loan("lab"); !ok || l.At != int64(len("before "+value+"\r\n")) {
			t.Errorf("lent: %+v", l)
		}
		prints(f, "lent "+value+"\r\n")
		read()
		prints(f, "more "+value+"\r\n")
		if err := h.Unlend("lab"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		prints(f, "after "+value+"\r\n")
		time.Sleep(time.Second)
		read()
		if want := strings.ReplaceAll("before X\r\nlent X\r\nmore X\r\nafter X\r\n", "X", strings.Repeat("*", len(value))); all.String() != want {
			t.Errorf("got %q, want %q", all.String(), want)
		}
	})
}

// The end of output and the exit reach a reader in the background, also what was held
// back.
func TestBackgroundReaderUntilTheExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, redacted(t, redact.Options{Tokens: true}), term.Spec{Env: secretEnv})
		r := reader(t, h.Masked(), output.ReaderOptions{Background: true})
		prints(f, "end "+value[:5])
		f.End(0)
		synctest.Wait()
		if got := events(t, r); len(got) != 2 || got[0].Data != "end *****" || got[1].Mark != output.MarkExited {
			t.Errorf("got %v", got)
		}
	})
}
