package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/platform/pty"
)

// builds returns a directory with both programs, built as users build them.
func builds(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the programs")
	}
	dir := t.TempDir()
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+"/", "./cmd/...") // as make build: what is compiled, both have
	c.Dir = "../.."
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return dir
}

// runDirs are the directories that scripts/run.sh makes for itself.
func runDirs(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("/tmp/tether-run.*")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestMakeRun(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	bin := builds(t)
	before := runDirs(t)

	t.Run("without a terminal", func(t *testing.T) {
		c := exec.Command("../../scripts/run.sh")
		c.Env = append(os.Environ(), "TETHER_BIN="+bin)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{"  | ", `GET "/hello"`, `GET "/without-a-daemon"`, `GET "/with-another"`, "  | tether: exited 143"} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("%q was not shown:\n%s", want, out)
			}
		}
		if !regexp.MustCompile(`\nhttp://127\.0\.0\.1:\d+/launch\?code=\w+\n$`).Match(out) {
			t.Errorf("it does not end with a link to the page:\n%s", out)
		}
	})
	t.Run("at a terminal", func(t *testing.T) {
		p := sitAt(t, pty.Command{Path: "../../scripts/run.sh", Env: append(os.Environ(), "TETHER_BIN="+bin, "TERM=xterm")})
		p.sees("TETHER_HOME=", "watch --wait demo-host shell", "http://127.0.0.1:", "/launch?code=")
		p.types("PS1='> '; echo mark$((1+1)); tether ls\r")
		p.sees("mark2", "demo-host")
		p.types("exit 3\r")
		p.sees("the shell ended with 3")
		p.exits(0)
	})
	t.Run("cannot succeed without a host", func(t *testing.T) {
		half := t.TempDir()
		if err := os.Symlink(filepath.Join(bin, "tether"), filepath.Join(half, "tether")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(half, "tether-host"), []byte("#!/bin/sh\necho READY ws://127.0.0.1:1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("../../scripts/run.sh")
		c.Env = append(os.Environ(), "TETHER_BIN="+half)
		if out, err := c.CombinedOutput(); err == nil {
			t.Errorf("succeeded:\n%s", out)
		}
	})
	if after := runDirs(t); len(after) > len(before) {
		t.Errorf("left behind: %v, before: %v", after, before)
	}
}

// tour returns the lines of the README's tour, one block after the other, without their comments; blocks[0] is for a terminal of its own.
func tour(t *testing.T) (blocks [][]string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "## A five-minute tour")
	text, _, _ = strings.Cut(text, "\n## ")
	for i, part := range strings.Split(text, "```") {
		if code, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			blocks = append(blocks, strings.Split(strings.TrimSpace(code), "\n"))
		}
	}
	if len(blocks) < 4 {
		t.Fatalf("the tour has %d blocks", len(blocks))
	}
	return blocks
}

// TestTour types the README's tour as a person would.
func TestTour(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	bin := builds(t)
	newHome(t)
	port := fmt.Sprint(testkit.FreePort(t))
	work := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(work, "bin")); err != nil {
		t.Fatal(err)
	}
	const prompt = "tour> "
	shell := func() *person {
		p := sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-i"}, Dir: work,
			Env: append(os.Environ(), "PS1="+prompt, "TERM=xterm", "ENV=", "HOME="+work, "SHELL=/bin/sh")})
		p.sees(prompt)
		return p
	}
	enter := func(p *person, line string) {
		code, _, _ := strings.Cut(line, "  #")
		p.types(strings.ReplaceAll(code, "9187", port) + "\r")
	}
	blocks := tour(t)
	host := shell()
	for i, line := range blocks[0] {
		if i > 0 {
			host.sees(prompt)
		}
		if strings.HasPrefix(line, "tether-host") {
			line += " --listen 127.0.0.1:" + port
		}
		enter(host, line)
	}
	host.sees("READY ws://127.0.0.1:")

	me := shell()
	ends := map[string]func(){ // what a person does beside typing the line
		"tether pair":          func() { me.sees("paired with local") },
		"tether status":        func() { me.sees("daemon     running") },
		"tether ls":            func() { me.sees("clock", "running", "local") },
		"tether watch":         func() { me.sees(":"); me.sees(":"); me.types("\x03") },
		"tether attach":        func() { me.sees(":"); me.types("\r~."); me.sees("come back with") },
		"tether read --tail":   func() { me.sees(":") },
		"tether read mine":     func() { me.sees("in the 2nd shell") },
		"tether commands":      func() { me.sees("echo in the") },
		"tether kill":          func() { me.sees("killed SIGTERM") },
		"tether shell":         func() { me.types("echo in the $((1+1))nd shell; exit\r"); me.sees("in the 2nd shell") },
		"tether run --private": func() { me.sees("\nonly for me") },
	}
	for _, block := range blocks[1:] {
		for _, line := range block {
			enter(me, line)
			for begin, act := range ends {
				if strings.HasPrefix(line, begin) {
					act()
				}
			}
			me.sees(prompt)
			me.types("echo status $?\r")
			want := "status 0\r\n"
			if strings.HasPrefix(line, "tether watch") {
				want = "status 130\r\n" // Ctrl-C
			}
			me.sees("\n"+want, prompt)
		}
	}
	host.types("\x03")
	host.sees(prompt)
}

// TestStatusIsQuick has a daemon that is paired with a host that hangs.
func TestStatusIsQuick(t *testing.T) {
	newHome(t)
	h := &testHost{}
	if err := h.start(""); err != nil {
		t.Fatal(err)
	}
	command(t, "pair", "--without-token", "ws://"+h.address)
	h.stop()
	l, err := net.Listen("tcp", h.address) // accepts by its backlog and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	command(t, "status")
	testkit.Eventually(t, patience, "status takes less than 5 s", func() bool { // asking the host takes longer whenever it is asked
		began := time.Now()
		out, status := command(t, "status")
		if status != 0 {
			t.Fatalf("status %d:\n%s", status, out)
		}
		return time.Since(began) < 5*time.Second
	})
}
