package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Who takes a lent terminal in hand is told so, and can switch that off.
func TestLentIsShown(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	h := host.New(host.Options{})
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.Close(); h.Close() })
	if out, status := command(t, "pair", "--without-token", "--name", "lab", server.URL); status != 0 {
		t.Fatalf("pair: %d %s", status, out)
	}
	p := sit(t, "run", "--name", "web", "--", "sh", "-c", `echo ready; read x; printf '\033[?1049hfull screen'; read x; printf '\033[?1049l'; read x; exit 3`)
	p.sees("web is visible to lab (0 watching)", "~. leaves web running", "ready")
	command(t, "unlend", "web")
	p.sees("web is no longer shared")
	command(t, "lend", "web")
	p.sees("is visible to lab (0 watching)")
	p.types("full\r") // a program that has the whole screen is not written into; it is said behind it
	p.sees("full screen")
	command(t, "unlend", "web")
	command(t, "lend", "web")
	p.types("x\r")
	p.sees("\x1b[?1049l", "is visible to lab (0 watching)")
	p.types("~.")
	p.sees("detached from web")
	p.exits(0)
	must.Do(t, os.MkdirAll(filepath.Join(home, "config"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(home, "config", "config.toml"), []byte("[lend]\nnotice = false\n"), 0o600))
	p = sit(t, "attach", "web")
	p.sees("ready")
	command(t, "unlend", "web")
	p.types("x\r")
	p.exits(3)
	if strings.Contains(p.shown(), "is shared with") {
		t.Errorf("although it is switched off: %q", p.shown())
	}
}
