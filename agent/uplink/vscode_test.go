//go:build linux

package uplink_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/platform/proc"
)

// vscodeHost starts VS Code's own agent host and returns how to reach it and
// the processes that descend from it. It is installed by make test where npm
// can.
func vscodeHost(t *testing.T) (client.Endpoint, func() []string) {
	t.Helper()
	script, err := filepath.Abs("../../../shared/peers/vscode-host.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("../../bin/tools/vscode-host")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{script, filepath.Join(dir, "vs", "out")} {
		if _, err := os.Stat(path); err != nil {
			t.Skip("VS Code's agent host is not installed (make test installs it where npm can)")
		}
	}
	port := freePorts(t)
	cmd := exec.Command("bash", script, "start", dir, fmt.Sprint(port), "SECRET")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range descend(t, cmd.Process.Pid) {
			syscall.Kill(p.Pid, syscall.SIGKILL)
		}
		cmd.Process.Kill()
		cmd.Wait()
	})
	shells := func() []string {
		var out []string
		for _, p := range descend(t, cmd.Process.Pid) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
			if argv0, _, _ := strings.Cut(string(line), "\x00"); strings.HasSuffix(argv0, "bash") || strings.HasSuffix(argv0, "/sh") {
				out = append(out, strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		return out
	}
	return client.Endpoint{URL: fmt.Sprintf("ws://127.0.0.1:%d", port), Token: "SECRET"}, shells
}

func descend(t *testing.T, root int) []proc.Info {
	all, err := proc.List()
	if err != nil {
		t.Fatal(err)
	}
	return proc.Descendants(all, root)
}

// freePorts finds two neighbouring ports, as the script wants them.
func freePorts(t *testing.T) int {
	for port := 45851; port < 46851; port += 2 {
		a, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		a.Close()
		b, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1))
		if err != nil {
			continue
		}
		b.Close()
		return port
	}
	t.Fatal("no two free ports")
	return 0
}

// look is what anybody sees at the host.
func look(t *testing.T, at client.Endpoint) ([]ahp.TerminalInfo, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
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

// VS Code's host has never heard of executionTarget: it would start a shell
// of its own. It must be refused, and where the person insists, that shell
// must be gone at once.
func TestVSCodeHostIsRefusedCleanly(t *testing.T) {
	at, shells := vscodeHost(t)
	testkit.Eventually(t, time.Minute, "VS Code's host answers", func() bool {
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
		if _, err := pool.As(term.User).Spawn(term.Spec{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/"), LendTo: []string{"code"}}); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, time.Minute, "the link gives up", func() bool { return link.Status().State == uplink.StateUnsupported })
		if s := link.Status(); assume != strings.Contains(s.Err.Error(), "shell of its own") {
			t.Errorf("assume=%v: %v", assume, s.Err)
		}
		testkit.Eventually(t, 30*time.Second, "no terminal and no shell of ours at the host", func() bool {
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
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}
