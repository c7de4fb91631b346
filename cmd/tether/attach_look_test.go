//go:build linux || darwin

package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/creack/pty"

	"tether/agent/local"
	"tether/host"
	"tether/internal/testkit"
)

// The session asks who can watch once changes are already being reported, not before.
func TestLentIsLookedAtWhenAttached(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	h := host.New(host.Options{})
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.Close(); h.Close() })
	if out, status := command(t, "pair", "--without-token", "--name", "lab", server.URL); status != 0 {
		t.Fatalf("pair: %d %s", status, out)
	}
	id, _ := command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "read x; exit 3")
	person, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	defer terminal.Close()
	a := &app{stdin: terminal, stdout: terminal, stderr: terminal}
	client, _, err := a.client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var seen testkit.Output
	go func() { // ends with the terminal
		for buf := make([]byte, 4096); ; {
			n, err := person.Read(buf)
			seen.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- a.attachTo(t.Context(), client, id, local.AttachOptions{Tail: replay}, false) }()
	testkit.Eventually(t, patience, "who can watch is said", func() bool { return strings.Contains(seen.String(), "web is visible to lab (0 watching)") })
	if _, err := person.WriteString("\r"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != exitCode(3) {
		t.Errorf("attached: %v", err)
	}
}
