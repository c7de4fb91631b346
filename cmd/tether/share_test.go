package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"tether/internal/qr"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// At a terminal a link that others can use is shown as a QR code, too, which has the link
// and nothing else; where the terminal is too small, it says so.
func TestShareShowsACode(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	h := &testHost{page: "https://host.example/s/#"}
	must.Do(t, h.start(""))
	defer h.stop()
	command(t, "pair", "--without-token", "ws://"+h.address)
	command(t, "run", "--detach", "--name", "web", "--host", "local", "--", "does", "read")
	link := regexp.MustCompile(`https://host\.example/s/#[a-z2-7]+\.[A-Za-z0-9_-]{43}`)
	at := func(line string) (screen, code string) {
		p := sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-c", line}, Env: append(os.Environ(), "TERM=xterm-256color")})
		p.exits(0)
		screen = strings.ReplaceAll(p.shown(), "\r\n", "\n")
		c, err := qr.Encode(link.FindString(screen))
		if err != nil || c.Size < 30 {
			t.Fatalf("no link on the screen %q, %v", screen, err)
		}
		return screen, c.Text(true)
	}
	if screen, code := at("NO_COLOR= tether share web"); !strings.Contains(screen, "\n"+code) {
		t.Errorf("%q has no code %q", screen, code)
	}
	for _, size := range []string{"cols 40 rows 30", "cols 100 rows 21"} {
		if screen, _ := at("stty " + size + "; tether share web"); strings.Contains(screen, "▀") || !strings.Contains(screen, "no QR code is shown: it takes 41 columns and 22 lines") {
			t.Errorf("%s: %q", size, screen)
		}
	}
	if screen, _ := at("tether share web | cat"); strings.Contains(screen, "QR") || strings.Contains(screen, "▀") {
		t.Errorf("for a program: %q", screen)
	}
}
