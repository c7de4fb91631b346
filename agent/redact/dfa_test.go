package redact_test

import (
	"sync"
	"testing"

	"tether/agent/redact"
)

// The automaton for tokens has some 16,000 states. Those that output does not lead to
// cost a daemon neither time nor memory.
func TestStatesAreFoundWhenNeeded(t *testing.T) {
	r, states := redact.Fresh()
	if text := string(coloured(64 << 10)); shown(r, text) != text {
		t.Error("plain output was masked")
	}
	if n := states(); n > 500 {
		t.Errorf("plain output has led to %d states", n)
	}
}

// Terminals that find states at the same time mask what an automaton masks that has all
// of them.
func TestStatesAreFoundTogether(t *testing.T) {
	text := string(telling(16<<10)) + "password: hunter2hunter2 ghp_abcdefghijklmnopqrstuvwxyz0123456789 postgres://me:s3cretpass@db/x\r\n"
	want := shown(compile(t, redact.Options{Tokens: true}, "a-value-that-is-not-there"), text)
	if want == text {
		t.Fatal("nothing was masked")
	}
	r, _ := redact.Fresh()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if got := shown(r, text[i:]); got != want[i:] {
				t.Errorf("masked as\n%.300q, want\n%.300q", got, want[i:])
			}
		})
	}
	all.Wait()
}
