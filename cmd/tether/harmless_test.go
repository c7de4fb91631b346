package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"tether/agent/localapi"
	"tether/ahp/client"
	"tether/cmd/tether/internal/view"
	"tether/internal/testkit/must"
)

// A host's error text is shown at a person's terminal like other output of a host: no
// part of it is obeyed.
func TestErrorsOfHostsAreHarmless(t *testing.T) {
	hostile := errors.New("no\x1b]52;c;eA==\x07\u009b6n\rterminal")
	check := func(where, text string) {
		t.Helper()
		if strings.ContainsAny(text, "\x1b\x07\u009b") || strings.Contains(strings.TrimSuffix(text, "\r\n"), "\r") || !strings.Contains(text, "52;c") {
			t.Errorf("%s: %q", where, text)
		}
	}
	a, printed := printing(t)
	a.explain(t.Context(), &hinted{&localapi.Error{Code: localapi.CodeUnreachable, Message: hostile.Error()}, "next"})
	check("an error", printed())
	a, printed = printing(t)
	v := &viewer{app: a, up: true}
	must.Get(v.event(t.Context(), client.Event{Kind: client.Down, Err: hostile}))(t)
	check("a link that is down", printed())
	if !strings.HasSuffix(printed(), "\r\n") {
		t.Errorf("a notice in raw mode is %q", printed())
	}
	var out bytes.Buffer
	l := &view.Lines{Out: &out, Title: "t"}
	must.Do(t, l.End(hostile))
	check("a terminal that cannot be shown", out.String())
}

// Lines of an error stay lines.
func TestErrorsOfSeveralLines(t *testing.T) {
	a, printed := printing(t)
	a.explain(t.Context(), errors.New("first\nsecond"))
	if printed() != "tether: first\nsecond\n" {
		t.Errorf("%q", printed())
	}
}

// A report has crashes but not the output next to them, which contains configured values.
func TestCrashIn(t *testing.T) {
	printed := "tether: ready, process 7\n" +
		"panic: one\n\ngoroutine 1 [running]:\nmain.main()\n\ttether/main.go:7\n" +
		"tether: config.toml: line 3: canary is no number\n  correct it, canary\n" +
		"tether: ready, process 8\nfatal error: two\ngoroutine 2 [running]:\n"
	want := "panic: one\n\ngoroutine 1 [running]:\nmain.main()\n\ttether/main.go:7\nfatal error: two\ngoroutine 2 [running]:\n"
	if got := string(crashIn([]byte(printed))); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := crashIn([]byte("tether: line 3: \"panic: canary\" is no number\n")); got != nil {
		t.Errorf("without a crash: %q", got)
	}
}
