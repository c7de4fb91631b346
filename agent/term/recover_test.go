package term_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// unlucky is output for which unluckyOptions panic while it is recorded.
const unlucky = "\x1b]633;P;Cwd=/unlucky;n\aunlucky output"

// unluckyOptions has a bug, and counts how often it was told.
func unluckyOptions(o term.Options, told *[]term.Recovery) term.Options {
	o.Checkout = func(dir string, _ time.Time, _ func(vocab.Checkout)) {
		if dir == "/unlucky" {
			panic(dir)
		}
	}
	o.Recovered = func(s term.Recovery) { *told = append(*told, s) }
	return o
}

// A panic caused by a terminal's output costs that output, not the terminal: its later
// output and its exit are recorded.
func TestABugIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []term.Recovery
		h, f, pool := start(t, unluckyOptions(redacted(t, redact.Options{}), &told), term.Spec{LendTo: []string{"lab"}, Env: secretEnv, Nonce: "n"})
		prints(f, "before \xff")
		prints(f, unlucky)
		prints(f, "after "+value)
		time.Sleep(time.Second)
		if len(told) != 1 || told[0].ID != h.ID() || told[0].Bytes != len(unlucky) || strings.Contains(told[0].Kind, "unlucky") {
			t.Fatalf("told of %+v", told)
		}
		if got, want := outwardText(t, hostOf(t, pool, "lab"), 0), "after "+strings.Repeat("*", len(value)); !strings.HasSuffix(got, want) {
			t.Errorf("the host sees %q, want %q", got, want)
		}
		if i := h.Info(); i.Lost != int64(len(unlucky)) || i.Bytes != int64(len("before ?"+unlucky+"after "+value)) {
			t.Errorf("lost %d of %d bytes", i.Lost, i.Bytes)
		}
		f.End(3)
		<-h.Done()
		if e := h.Info().Exit; e == nil || e.Code != 3 {
			t.Errorf("exit %+v", e)
		}
	})
}

// A daemon that adopts output that caused a panic in the former one panics, too, and
// still adopts the terminal.
func TestABugWhileATerminalIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, _, l := keeping(t, v, term.Options{}, term.Spec{Nonce: "n"})
		v.print(unlucky)
		synctest.Wait()
		l.leave(pool)
		var told []term.Recovery
		pool, h, l := adopting(t, v, unluckyOptions(term.Options{}, &told))
		synctest.Wait()
		if len(told) != 1 || h.Info().Lost == 0 {
			t.Errorf("told of %+v; lost %d bytes", told, h.Info().Lost)
		}
		v.print("after")
		synctest.Wait()
		r := must.Get(h.Reader(output.ReaderOptions{View: output.ViewText, Tail: 5}))(t)
		defer r.Close()
		if got := events(t, r); len(got) != 1 || got[0].Data != "after" {
			t.Errorf("got %v", got)
		}
		l.leave(pool)
	})
}
