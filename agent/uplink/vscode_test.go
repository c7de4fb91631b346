//go:build linux

package uplink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// vscodeHost starts VS Code's own agent host and returns how to reach it and the shells
// that descend from it.
func vscodeHost(t *testing.T) (client.Endpoint, func() []string) {
	t.Helper()
	h := testkit.StartVSCodeHost(t, "../..")
	shells := func() []string {
		var out []string
		for _, p := range descend(t, h.Pid) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
			if argv0, _, _ := strings.Cut(string(line), "\x00"); strings.HasSuffix(argv0, "bash") || strings.HasSuffix(argv0, "/sh") {
				out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		return out
	}
	return client.Endpoint{URL: h.URL, Token: h.Token}, shells
}

func descend(t *testing.T, root int) []proc.Info {
	all := must.Get(proc.List())(t)
	return proc.Descendants(all, root)
}

// look returns any client's view of the host.
func look(t *testing.T, at client.Endpoint) ([]ahp.TerminalInfo, error) {
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	c, err := client.Connect(ctx, at, client.Options{ClientID: "viewer", Subscriptions: []string{ahp.RootURI}})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var root ahp.RootState
	err = json.Unmarshal(c.Result().Snapshots[0].State, &root)
	return root.Terminals, err
}

// VS Code's host has never heard of executionTarget: it would start a shell of its own.
// It must be refused, and where the person insists, that shell must be gone at once.
func TestVSCodeHostIsRefusedCleanly(t *testing.T) {
	at, shells := vscodeHost(t)
	testkit.Eventually(t, 5*time.Minute, "VS Code's host answers", func() bool {
		_, err := look(t, at)
		return err == nil
	})
	if _, err := look(t, client.Endpoint{URL: at.URL, Token: "WRONG"}); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("wrong token: %v, want ErrUnauthorized", err)
	}
	before := shells()
	for _, assume := range []bool{false, true} {
		pool := realPool(t)
		link := uplink.New(uplink.Options{Name: "code", Endpoint: at, ClientID: "laptop", AssumeClientTerminals: assume,
			Terminals: pool.As(term.Host("code"))})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); link.Run(ctx) }()
		for range 8 {
			must.Get(pool.As(term.User).Spawn(term.Spec{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/"), LendTo: []string{"code"}}))(t)
		}
		for range 3 { // attempts
			tried := time.Now()
			link.Nudge()
			testkit.Eventually(t, 3*time.Minute, "the link gives up", func() bool {
				s := link.Status()
				return s.State == uplink.StateUnsupported && s.Since.After(tried)
			})
		}
		if s := link.Status(); assume != strings.Contains(s.Err.Error(), "shell of its own") {
			t.Errorf("assume=%v: %v", assume, s.Err)
		}
		testkit.Eventually(t, 3*time.Minute, "no terminal and no shell of ours at the host", func() bool {
			seen, err := look(t, at)
			return err == nil && len(seen) == 0 && len(shells()) <= len(before)
		})
		cancel()
		<-ended
	}
}

func realPool(t *testing.T) *term.Pool {
	p := term.NewPool(term.Options{KillGrace: 100 * time.Millisecond})
	t.Cleanup(func() {
		check.OK(t, p.Close(context.Background()))
	})
	return p
}
