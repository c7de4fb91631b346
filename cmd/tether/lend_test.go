package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/host"
	"tether/internal/testkit"
)

// Who takes a lent terminal in hand is told so, and can switch that off.
func TestLentIsSaid(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	h := host.New(host.Options{})
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.Close(); h.Close() })
	if out, status := command(t, "pair", "--without-token", "--name", "lab", server.URL); status != 0 {
		t.Fatalf("pair: %d %s", status, out)
	}
	p := sit(t, "run", "--name", "web", "--", "sh", "-c", "echo ready; read x; exit 3")
	p.sees("is lent to lab", "ready")
	p.types("~.")
	p.sees("left pty-")
	p.exits(0)
	if err := os.MkdirAll(filepath.Join(home, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config", "config.toml"), []byte("[lend]\nnotice = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = sit(t, "attach", "web")
	p.types("x\r")
	p.exits(3)
	if strings.Contains(p.shown(), "is lent to") {
		t.Errorf("although it is switched off: %q", p.shown())
	}
}
