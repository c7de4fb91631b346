package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A stream of events continues when the daemon is replaced: the client is told again that
// it is active, and gets earlier and later events, once.
func TestEventStreamOutlivesDaemon(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	t.Setenv(awayVar, patience.String())
	trigger := filepath.Join(t.TempDir(), "go")
	id, _ := command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "echo error 1; while [ ! -e "+trigger+" ]; do sleep 0.05; done; echo error 2; exec sleep 600")
	command(t, "wait", "web", "--pattern", "error 1")
	cmd := atAPrompt("tether", "mcp")
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	cmd.Stderr = os.Stderr
	must.Do(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	defer time.AfterFunc(3*patience, func() { cmd.Process.Kill() }).Stop() // then heard ends
	type message struct {
		ID     any
		Method string
		Params struct {
			Truncated bool
			Data      map[string]any
		}
	}
	heard := bufio.NewScanner(out)
	next := func(method string) message {
		t.Helper()
		for heard.Scan() {
			var m message
			if json.Unmarshal(heard.Bytes(), &m) != nil {
				continue
			}
			if m.Method == method || method == "" && m.ID != nil {
				return m
			}
			if m.ID == "s" {
				t.Fatalf("the stream was answered: %s", heard.Bytes())
			}
		}
		t.Fatalf("the session has ended before %q", method)
		return message{}
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	next("")
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":"s","method":"events/stream","params":{"name":"terminal.line","arguments":{"pattern":"error","terminalId":%q}}}`+"\n", id)
	if next("notifications/events/active").Params.Truncated {
		t.Error("truncated at once")
	}
	replaced := exec.Command("tether", "daemon", "--replace")
	must.Do(t, replaced.Start())
	t.Cleanup(func() { endDaemon(t, home); replaced.Wait() })
	if next("notifications/events/active").Params.Truncated {
		t.Error("truncated by the next daemon")
	}
	must.Do(t, os.WriteFile(trigger, nil, 0o600))
	if got := next("notifications/events/event").Params.Data["line"]; got != "error 2" {
		t.Errorf("told of %v", got)
	}
}
