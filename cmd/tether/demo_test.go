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
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// builds returns a directory with both programs, built as users build them.
func builds(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, testkit.Build(dir))
	return dir
}

// demoDirs are the directories that tether demo makes for itself.
func demoDirs(t *testing.T) []string {
	t.Helper()
	return must.Get(filepath.Glob("/tmp/tether-demo.*"))(t)
}

// tether demo, which make run starts, shows everything, succeeds only if an observer saw
// it, and leaves nothing behind.
func TestDemo(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	bin := builds(t)
	before := demoDirs(t)
	program := filepath.Join(bin, "tether")
	env := append(os.Environ(), "TERM=xterm", "DISPLAY=", "WAYLAND_DISPLAY=", "TETHER_LEND_DEFAULT=no", "TETHER_HOME=/nowhere")

	t.Run("without a terminal", func(t *testing.T) {
		c := exec.Command(program, "demo")
		c.Env, c.Dir = env, t.TempDir() // without Go, and without a checkout
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{"  | ", `GET "/hello"`, "page.html has changed", `fetch_page {"path":"/broken"`, "500 Internal Server Error", "This page is broken",
			"printed meanwhile:\n  | panic: runtime error: index out of range", "demo.inCart", `GET "/without-a-daemon"`, `GET "/with-another"`, "  | tether: exited "} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("%q was not shown:\n%s", want, out)
			}
		}
		if !regexp.MustCompile(`\nhttp://127\.0\.0\.1:\d+/launch#\w+\n$`).Match(out) {
			t.Errorf("it does not end with a link to the page:\n%s", out)
		}
	})
	t.Run("at a terminal", func(t *testing.T) {
		p := sitAt(t, pty.Command{Path: program, Args: []string{"tether", "demo"}, Env: env})
		p.sees("/launch#", "TETHER_HOME=", "watch demo-host dev-server", "q quit")
		p.types("x") // no key
		p.types("o")
		p.sees("no desktop", "/launch#", "q quit")
		p.types("c")
		p.sees("page changed and requested once", "q quit")
		p.types("f")
		p.sees("This page is broken", "panic: runtime error", "q quit")
		p.types("s")
		p.sees("tether run --name shell")
		p.types("echo mark$((1+1)); tether ls\r")
		p.sees("mark2", "dev-server", "demo-host")
		p.types("exit 3\r")
		p.sees("the shell has ended", "q quit")
		p.types("e")
		p.sees("$ tether kill dev-server", "server ended;", "q quit")
		p.types("c")
		p.sees("the server has already ended", "q quit")
		p.types("q")
		p.sees("removes everything")
		p.exits(0)
	})
	t.Run("interrupted", func(t *testing.T) {
		p := sitAt(t, pty.Command{Path: program, Args: []string{"tether", "demo"}, Env: env})
		p.sees("q quit")
		p.types("\x03")
		p.exits(130)
	})
	t.Run("cannot succeed without a host", func(t *testing.T) {
		half := t.TempDir()
		data := must.Get(os.ReadFile(program))(t)
		must.Do(t, os.WriteFile(filepath.Join(half, "tether"), data, 0o700))
		demo := func() (string, error) {
			c := exec.Command(filepath.Join(half, "tether"), "demo")
			c.Env = append(env, "PATH=/usr/bin:/bin")
			out, err := c.CombinedOutput()
			return string(out), err
		}
		if out, err := demo(); err == nil || !strings.Contains(out, "the demo needs tether-host") {
			t.Errorf("without the program: %v\n%s", err, out)
		}
		must.Do(t, os.WriteFile(filepath.Join(half, "tether-host"), []byte("#!/bin/sh\necho READY ws://127.0.0.1:1\nexec sleep 1000\n"), 0o700))
		if out, err := demo(); err == nil {
			t.Errorf("with one that serves nothing it succeeded:\n%s", out)
		}
	})
	if after := demoDirs(t); len(after) > len(before) {
		t.Errorf("left behind: %v, before: %v", after, before)
	}
	if out, _ := exec.Command("pgrep", "-f", regexp.QuoteMeta(bin)).Output(); len(out) > 0 {
		t.Errorf("these processes run on: %s", out)
	}
}

// tour returns the lines of the README's tour, one block after the other, without their
// comments; blocks[0] is for a terminal of its own.
func tour(t *testing.T) (blocks [][]string) {
	t.Helper()
	readme := must.Get(os.ReadFile("../../README.md"))(t)
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
	must.Do(t, os.Symlink(bin, filepath.Join(work, "bin")))
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
	ends := map[string]func(){ // a person's actions besides typing the line
		"tether pair":          func() { me.sees("paired with local") },
		"tether status":        func() { me.sees("daemon     running") },
		"tether ls":            func() { me.sees("clock", "running", "local") },
		"tether watch":         func() { me.sees(":"); me.sees(":"); me.types("\x03") },
		"tether attach":        func() { me.sees(":"); me.types("\r~."); me.sees("reattach with") },
		"tether read --tail":   func() { me.sees(":") },
		"tether read mine":     func() { me.sees("in the 2nd shell") },
		"tether commands":      func() { me.sees("echo in the") },
		"tether fetch":         func() { me.sees("This page is broken", "panic: runtime error") },
		"tether kill clock":    func() { me.sees("killed SIGTERM") },
		"tether kill web":      func() { me.sees("web exited 0") },
		"tether shell":         func() { me.types("echo in the $((1+1))nd shell; exit\r"); me.sees("in the 2nd shell") },
		"tether run --private": func() { me.sees("0tonly for me") }, // behind the sequence that keeps the title
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
			switch {
			case strings.HasPrefix(line, "tether watch"):
				want = "status 130\r\n" // Ctrl-C
			case strings.HasPrefix(line, "tether fetch"):
				want = "status 1\r\n" // the server answered 500
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
	must.Do(t, h.start(""))
	command(t, "pair", "--without-token", "ws://"+h.address)
	h.stop()
	l := must.Get(net.Listen("tcp", h.address))(t) // accepts by its backlog and never answers
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
