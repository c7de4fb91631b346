package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tether/agent/local"
	"tether/ahp"
)

func TestEscapes(t *testing.T) {
	for _, c := range []struct {
		typed, sent string
		did         escapeAction
		rest        string
	}{
		{"plain", "plain", escapeNone, ""},
		{"~.", "", escapeDetach, ""},
		{"~.after", "", escapeDetach, "after"},
		{"a~.", "a~.", escapeNone, ""},
		{"a\r~.", "a\r", escapeDetach, ""},
		{"a\n~?b", "a\n", escapeHelp, "b"},
		{"~~", "~", escapeNone, ""},
		{"~~.", "~.", escapeNone, ""},
		{"~x", "~x", escapeNone, ""},
		{"~\r~.", "~\r", escapeDetach, ""},
		{"~", "", escapeNone, ""},
		{"\r\r~.", "\r\r", escapeDetach, ""},
		{"\x1b[A~.", "\x1b[A~.", escapeNone, ""},
		{"ü\r~ü", "ü\r~ü", escapeNone, ""},
	} {
		var e escapes
		sent, did, rest := e.feed(nil, []byte(c.typed))
		if string(sent) != c.sent || did != c.did || string(rest) != c.rest {
			t.Errorf("%q: sent %q, did %d, rest %q; want %q, %d, %q", c.typed, sent, did, rest, c.sent, c.did, c.rest)
		}
	}
}

// everyKey feeds text key by key.
func everyKey(text []byte) (sent []byte, detached bool) {
	var e escapes
	for i := range text {
		var did escapeAction
		if sent, did, _ = e.feed(sent, text[i:i+1]); did == escapeDetach {
			return sent, true
		}
	}
	return sent, false
}

func FuzzEscapes(f *testing.F) {
	for _, s := range []string{"~.", "a\r~~b\r~?~.", "~x~\r~"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, typed []byte) {
		want, detached := everyKey(typed)
		var e escapes
		var sent []byte
		did := escapeNone
		for rest := typed; len(rest) > 0 && did != escapeDetach; {
			sent, did, rest = e.feed(sent, rest)
		}
		if string(sent) != string(want) || (did == escapeDetach) != detached {
			t.Errorf("%q at once: %q, %d; key by key: %q, %t", typed, sent, did, want, detached)
		}
		if len(sent) > len(typed) {
			t.Errorf("%q became more: %q", typed, sent)
		}
	})
}

func TestFindAtHost(t *testing.T) {
	all := []ahp.TerminalInfo{{Title: "web", Resource: "ahp-terminal:/aa-1"}, {Title: "web server", Resource: "ahp-terminal:/bb-2"}, {Title: "DB", Resource: "ahp-terminal:/bb-3"}}
	for ref, want := range map[string]string{
		"web": "aa-1", "server": "bb-2", "db": "bb-3", "bb-3": "bb-3", "ahp-terminal:/bb-2": "bb-2", "aa": "aa-1",
	} {
		if got, err := find(all, ref); err != nil || !strings.HasSuffix(got.Resource, want) {
			t.Errorf("%q: %q, %v; want %s", ref, got.Resource, err, want)
		}
	}
	for ref, want := range map[string]local.Code{"nothing": local.CodeNoTerminal, "bb": local.CodeAmbiguous} {
		var e *local.Error
		if _, err := find(all, ref); !errors.As(err, &e) || e.Code != want || e.Hint == "" {
			t.Errorf("%q: %v, want %s with a hint", ref, err, want)
		}
	}
}

func TestExitStatuses(t *testing.T) {
	live, cancelled := context.Background(), func() context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"fine", live, nil, 0},
		{"anything", live, errors.New("x"), 1},
		{"usage", live, &usageError{}, 2},
		{"not running", live, fmt.Errorf("x: %w", local.ErrNotRunning), 3},
		{"not paired", live, about("x", &local.Error{Code: local.CodeNotPaired}), 4},
		{"refused", live, &local.Error{Code: local.CodeRefused}, 4},
		{"unreachable", live, &local.Error{Code: local.CodeUnreachable}, 5},
		{"denied", live, &hinted{&local.Error{Code: local.CodeDenied}, "hint"}, 6},
		{"no terminal", live, errors.Join(&local.Error{Code: local.CodeNoTerminal}, errors.New("x")), 7},
		{"timed out", live, context.DeadlineExceeded, 8},
		{"timed out over there", live, &local.Error{Code: local.CodeTimeout}, 8},
		{"the command's", live, exitCode(42), 42},
		{"interrupted", cancelled, fmt.Errorf("x: %w", context.Canceled), 130},
		{"pipe", live, syscall.EPIPE, 141},
		{"dropped", live, fmt.Errorf("%w: x", local.ErrDropped), 254},
		{"cannot attach", live, &cannotAttach{local.ErrNotRunning}, 255},
		{"code of a newer daemon", live, &local.Error{Code: "novel"}, 1},
	} {
		if got := exitStatus(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestEnvironmentHasNoTokens(t *testing.T) {
	if got := environment([]string{"A=1", "TETHER_TOKEN=x", "TETHER_HOME=/h"}); !slices.Equal(got, []string{"A=1", "TETHER_HOME=/h"}) {
		t.Errorf("the environment of a command is %q", got)
	}
}

// Every command stands below a title in tether --help.
func TestCommandsHaveGroups(t *testing.T) {
	for _, c := range newRoot(&app{}).Commands() {
		if c.GroupID == "" && !c.Hidden {
			t.Errorf("%s has no group", c.Name())
		}
	}
}
