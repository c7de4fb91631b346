//go:build windows

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func TestServerExecutedShellOnWindows(t *testing.T) {
	testkit.Leaks(t)
	t.Setenv("SHELL", filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe"))
	t.Setenv("TETHER_SECRET", "canary")
	r := start(t, "--token", ownToken, "--log-level", "trace")
	var x transcript
	c := must.Get(connect(t, r, ownToken, client.Options{OnEnvelope: x.take}))(t)
	dir := filepath.ToSlash(t.TempDir())
	for name, cwd := range map[string]string{"uri": "file:///" + dir, "path": dir} {
		uri := "ahp-terminal:/shell-" + name
		create := ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim("test"), Cwd: "file:///C:/no/such/place"}
		if err := c.CreateTerminal(t.Context(), create); err == nil {
			t.Error("a shell in a directory that is not there was started")
		}
		create.Cwd = cwd
		if err := c.CreateTerminal(t.Context(), create); err != nil {
			t.Fatalf("in %s: %v", cwd, err)
		}
		must.Get(c.Subscribe(t.Context(), uri))(t)
		for input, want := range map[string]string{
			"if defined TETHER_SECRET (echo had%X%it) else (echo had%X%none)\r": "had%X%none", "cd\r": filepath.FromSlash(dir)} {
			must.Get(c.Dispatch(t.Context(), uri, ahp.TerminalInput{Data: input}))(t)
			testkit.Eventually(t, patience, input, func() bool { return x.has(want) })
		}
		must.Get(c.Dispatch(t.Context(), uri, ahp.TerminalInput{Data: "exit 300\r"}))(t)
		testkit.Eventually(t, patience, "the exit", func() bool {
			snapshot, err := c.Subscribe(t.Context(), uri)
			return err == nil && strings.Contains(string(snapshot.Snapshot.State), `"exitCode":300`)
		})
		check.OK(t, c.DisposeTerminal(t.Context(), uri))
	}
	if strings.Contains(r.stderr.String(), "canary") {
		t.Error("the secret is in the log")
	}
}
