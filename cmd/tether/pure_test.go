package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/ahp"
)

func TestFindAtHost(t *testing.T) {
	all := []ahp.TerminalInfo{{Title: "web", Resource: "ahp-terminal:/aa-1"}, {Title: "web server", Resource: "ahp-terminal:/bb-2"}, {Title: "DB", Resource: "ahp-terminal:/bb-3"}}
	for ref, want := range map[string]string{
		"web": "aa-1", "server": "bb-2", "db": "bb-3", "bb-3": "bb-3", "ahp-terminal:/bb-2": "bb-2", "aa": "aa-1",
	} {
		if got, err := find(all, ref); err != nil || !strings.HasSuffix(got.Resource, want) {
			t.Errorf("%q: %q, %v; want %s", ref, got.Resource, err, want)
		}
	}
	for ref, want := range map[string]localapi.Code{"nothing": localapi.CodeNoTerminal, "bb": localapi.CodeAmbiguous} {
		var e *localapi.Error
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
		{"not running", live, fmt.Errorf("x: %w", localclient.ErrNotRunning), 3},
		{"not paired", live, about("x", &localapi.Error{Code: localapi.CodeNotPaired}), 4},
		{"refused", live, &localapi.Error{Code: localapi.CodeRefused}, 4},
		{"unreachable", live, &localapi.Error{Code: localapi.CodeUnreachable}, 5},
		{"denied", live, &hinted{&localapi.Error{Code: localapi.CodeDenied}, "hint"}, 6},
		{"no terminal", live, errors.Join(&localapi.Error{Code: localapi.CodeNoTerminal}, errors.New("x")), 7},
		{"timed out", live, context.DeadlineExceeded, 8},
		{"timed out over there", live, &localapi.Error{Code: localapi.CodeTimeout}, 8},
		{"the command's", live, exitCode(42), 42},
		{"interrupted", cancelled, fmt.Errorf("x: %w", context.Canceled), 130},
		{"pipe", live, syscall.EPIPE, 141},
		{"dropped", live, fmt.Errorf("%w: x", localclient.ErrDropped), 254},
		{"cannot attach", live, &cannotAttach{localclient.ErrNotRunning}, 255},
		{"code of a newer daemon", live, &localapi.Error{Code: "novel"}, 1},
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
