package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// lent is a daemon with a terminal called web, and no host, for programs as users build
// them.
type lent struct {
	t       *testing.T
	bin     string // in PATH before all others; a test may put stand-ins there
	program string
	env     []string
}

func lendsNothing(t *testing.T, config string) *lent {
	t.Helper()
	l := &lent{t: t, bin: builds(t)}
	home, tmp := testkit.Home(t), t.TempDir()
	l.program = filepath.Join(l.bin, "tether")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TETHER_") && !strings.HasPrefix(e, "PATH=") && !strings.HasPrefix(e, "TMPDIR=") {
			l.env = append(l.env, e)
		}
	}
	l.env = append(l.env, "TETHER_HOME="+home, allowRootVar+"=1", "TMPDIR="+tmp, "PATH="+l.bin+":/usr/bin:/bin")
	must.Do(t, os.MkdirAll(filepath.Join(home, "config"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(home, "config", "config.toml"), []byte(config), 0o600))
	t.Cleanup(func() {
		l.run("stop")
		left, _ := filepath.Glob(filepath.Join(tmp, "tether-share.*"))
		if len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	if out, status := l.run("run", "--detach", "--name", "web", "--", "sh", "-c", "echo hello guest; exec cat"); status != 0 {
		t.Fatal(out)
	}
	return l
}

// run runs a command of tether to its end.
func (l *lent) run(args ...string) (out string, status int) {
	l.t.Helper()
	c := exec.Command(l.program, args...)
	c.Env = l.env
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		l.t.Fatal(err)
	}
	return string(text), c.ProcessState.ExitCode()
}

// standIn puts a program of that name into PATH.
func (l *lent) standIn(name, script string) {
	l.t.Helper()
	must.Do(l.t, os.WriteFile(filepath.Join(l.bin, name), []byte("#!/bin/sh\n"+script), 0o700))
}

// sharing is a command that shares, while it runs.
type sharing struct {
	t    *testing.T
	lent *lent
	c    *exec.Cmd
	out  testkit.Output
	end  chan struct{} // closed once it has ended
	all  []proc.Info   // its descendants at the last look
}

func (l *lent) share(args ...string) *sharing {
	l.t.Helper()
	s := &sharing{t: l.t, lent: l, c: exec.Command(l.program, append([]string{"share", "web", "--here"}, args...)...), end: make(chan struct{})}
	s.c.Env, s.c.Stdout, s.c.Stderr = l.env, &s.out, &s.out
	s.c.WaitDelay = time.Second
	must.Do(l.t, s.c.Start())
	go func() {
		defer close(s.end)
		_ = s.c.Wait() // the status is looked at
	}()
	l.t.Cleanup(func() {
		_ = s.c.Process.Kill() // fails if it has ended
		<-s.end
	})
	return s
}

func (s *sharing) sees(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	testkit.Eventually(s.t, patience, pattern+" in "+s.out.String(), func() bool { return re.MatchString(s.out.String()) })
	return re.FindString(s.out.String())
}

var hereLink = `(?m)^https?://\S+/s/#[a-z2-7]+\.[A-Za-z0-9_-]{43}$`

// ends waits for its end with that status, -1 for a killed one, and until nothing of it
// is left.
func (s *sharing) ends(status int) {
	s.t.Helper()
	select {
	case <-s.end:
	case <-time.After(patience):
		s.t.Fatalf("it does not end: %s", s.out.String())
	}
	if got := s.c.ProcessState.ExitCode(); got != status {
		s.t.Errorf("ended with %d, want %d:\n%s", got, status, s.out.String())
	}
	testkit.Eventually(s.t, patience, "the end of all its processes", func() bool {
		for _, p := range s.all {
			if now, err := proc.Lookup(p.Pid); err == nil && now.ID == p.ID && !now.Zombie {
				return false
			}
		}
		return true
	})
	testkit.Eventually(s.t, patience, "no link and no loan", func() bool {
		links, _ := s.lent.run("shares")
		list, _ := s.lent.run("ls")
		return links == "no links\n" && !strings.Contains(list, "here-")
	})
}

// family remembers the descendants of the command, which must end with it.
func (s *sharing) family(names ...string) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, fmt.Sprint(names), func() bool {
		all := must.Get(proc.List())(s.t)
		s.all = proc.Descendants(all, s.c.Process.Pid)
		found := map[string]bool{}
		for _, p := range s.all {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
			for _, name := range names {
				argv := strings.Split(string(line), "\x00")
				if filepath.Base(argv[0]) == name || len(argv) > 1 && filepath.Base(argv[1]) == name {
					found[name] = true
				}
			}
		}
		return len(found) == len(names)
	})
}

// watches opens a link as a guest's program does, and returns what it shows at first.
func (l *lent) watches(link string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out testkit.Output
	c := exec.CommandContext(ctx, l.program, "watch", "-")
	c.Env, c.Stdin, c.Stdout, c.Stderr = append(l.env, "TETHER_HOME="+l.t.TempDir()), strings.NewReader(link+"\n"), &out, &out
	must.Do(l.t, c.Start())
	testkit.Eventually(l.t, patience, "the terminal", func() bool { return strings.Contains(out.String(), "hello guest") || ctx.Err() != nil })
	cancel()
	_ = c.Wait() // it was killed
	return out.String()
}

// A terminal is shared without a host: a guest sees it, and nothing else is offered.
// Everything ends with the command, however that ends.
func TestShareHere(t *testing.T) {
	l := lendsNothing(t, "")
	t.Run("what a guest gets", func(t *testing.T) {
		s := l.share("--via", "none")
		link := s.sees(hereLink)
		s.sees("who can read what is shown .none.: only programs on this machine")
		if shown := l.watches(link); !strings.Contains(shown, "hello guest") {
			t.Error(shown)
		}
		base, _, _ := strings.Cut(link, "/s/")
		for path, want := range map[string]int{
			"/s/": 200, "/assets/guest.js": 200, "/": 404, "/people": 404, "/login": 404, "/mcp": 404, "/terminals": 404, "/plain": 404, "/events": 404,
			"/shells": 404, "/launch": 404, "/metrics": 404, "/healthz": 404, "/s/../people": 404, "/s//people": 404, "/s/state": 401, "/pair": 404, "/ahp": 404,
		} {
			r := must.Get(http.NewRequest(http.MethodGet, base+path, nil))(t)
			answer := must.Get(http.DefaultClient.Do(r))(t)
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s: %d, want %d", path, answer.StatusCode, want)
			}
		}
		if out, _ := l.run("status"); !strings.Contains(out, "1 lent") || !strings.Contains(out, "none; pair with one") {
			t.Errorf("status: %s", out)
		}
		s.family("tether-host")
		l.run("unshare", "web")
		s.sees("the link has ended")
		s.ends(0)
	})
	t.Run("its time is up", func(t *testing.T) {
		s := l.share("--via", "none", "--for", "1s")
		s.ends(0)
	})
	t.Run("interrupted", func(t *testing.T) {
		s := l.share("--via", "none", "--once")
		s.sees(hereLink)
		s.sees("the first browser that opens this link")
		s.family("tether-host")
		_ = s.c.Process.Signal(os.Interrupt)
		s.ends(130)
	})
	t.Run("killed", func(t *testing.T) {
		s := l.share("--via", "none")
		s.sees(hereLink)
		s.family("tether-host")
		_ = s.c.Process.Kill()
		s.ends(-1)
	})
	t.Run("its host is killed", func(t *testing.T) {
		s := l.share("--via", "none")
		s.sees(hereLink)
		s.family("tether-host")
		_ = syscall.Kill(s.all[len(s.all)-1].Pid, syscall.SIGKILL)
		s.sees("the private host has ended")
		s.ends(1)
	})
	t.Run("the daemon ends", func(t *testing.T) {
		s := l.share("--via", "none")
		s.sees(hereLink)
		if out, status := l.run("daemon", "--replace", "--background"); status != 0 {
			t.Fatal(out)
		}
		s.sees("the link has ended with the daemon")
		s.ends(localapi.ExitDropped)
	})
	t.Run("refusals", func(t *testing.T) {
		for _, c := range [][]string{
			{"--host", "x"}, {"--via", "smoke"}, {"--via", "ssh:-oProxyCommand=x"}, {"--via", "ssh:a", "--public-url", "http://a.example"}, {"--via", "none", "--public-url", "https://a.example"},
		} {
			s := l.share(c...)
			s.ends(2)
		}
		if out, status := l.run("share", "web", "--via", "none"); status != 2 || !strings.Contains(out, "need --here") {
			t.Errorf("%d %s", status, out)
		}
		if out, status := l.run("share", "web"); status != 4 || !strings.Contains(out, "tether share ID --here") {
			t.Errorf("%d %s", status, out)
		}
		l.run("run", "--detach", "--private", "--name", "diary", "--", "cat")
		if out, status := l.run("share", "diary", "--here"); status == 0 || !strings.Contains(out, "private") {
			t.Errorf("%d %s", status, out)
		}
		must.Do(t, os.Remove(filepath.Join(l.bin, "tether-host")))
		if out, status := l.run("share", "web", "--here"); status != 1 || !strings.Contains(out, "needs tether-host, which is neither next to tether nor in PATH") || !strings.Contains(out, "packages and make build") {
			t.Errorf("%d %s", status, out)
		}
	})
}

// The rules for links hold.
func TestShareHereIsRefused(t *testing.T) {
	for _, c := range []struct {
		config, want string
		status       int
	}{
		{"[lend]\nshares = false\n", "links for guests", localapi.ExitUsage},
		{"[[lend.rules]]\neffect = \"never\"\n", "lend rule", localapi.ExitDenied},
	} {
		l := lendsNothing(t, c.config)
		s := l.share("--via", "none")
		s.sees(c.want)
		s.ends(c.status)
		if strings.Contains(s.out.String(), "/s/#") {
			t.Errorf("%q: %s", c.config, s.out.String())
		}
	}
}

// An agent with the printed token reads the terminal by MCP, and without the flag there
// is no such door.
func TestShareHereForAnAgent(t *testing.T) {
	l := lendsNothing(t, "")
	s := l.share("--via", "none", "--agent")
	lines := strings.Split(s.sees(`(?m)^http://127\.0\.0\.1:\d+/mcp\n\S+$`), "\n")
	session := ""
	call := func(token, body string) (int, string) {
		r := must.Get(http.NewRequest(http.MethodPost, lines[0], strings.NewReader(body)))(t)
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer := must.Get(http.DefaultClient.Do(r))(t)
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		session = answer.Header.Get("Mcp-Session-Id")
		return answer.StatusCode, string(text)
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	if status, text := call(lines[1], hello); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if session != "" {
		id := session
		call(lines[1], `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		session = id
	}
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_terminals","arguments":{}}}`
	if status, text := call(lines[1], list); status != 200 || !strings.Contains(text, "web") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := call("wrong", list); status != 403 {
		t.Errorf("%d %s", status, text)
	}
	_ = s.c.Process.Signal(os.Interrupt)
	s.ends(130)
}

// By ssh -R to a real sshd: the far end has the port on its loopback alone. A tunnel that
// dies is shown, and opened again.
func TestShareHereBySSH(t *testing.T) {
	l := lendsNothing(t, "")
	l.sshTo(t)
	s := l.share("--via", "ssh:far.example")
	link := s.sees(hereLink)
	s.sees("who can read what is shown .ssh to far.example.: whoever has the link and can reach ports on the loopback of far.example; its administrators")
	s.sees("the link works on far.example alone, since the port is bound to its loopback")
	if !strings.HasPrefix(link, "http://127.0.0.1:") {
		t.Error(link)
	}
	if shown := l.watches(link); !strings.Contains(shown, "hello guest") {
		t.Error(shown)
	}
	s.family("ssh", "tether-host")
	for _, p := range s.all {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid)); strings.HasPrefix(string(line), "sshd") || strings.HasPrefix(string(line), "/usr/bin/ssh\x00") {
			_ = syscall.Kill(p.Pid, syscall.SIGKILL)
		}
	}
	s.sees(`ssh to far\.example: closed \(.*\); trying again in 1s`)
	s.sees(`ssh to far\.example: open again\n`)
	if shown := l.watches(link); !strings.Contains(shown, "hello guest") {
		t.Error(shown)
	}
	s.family("ssh", "tether-host")
	_ = s.c.Process.Kill()
	s.ends(-1)

	port := freePort(t)
	s = l.share("--via", fmt.Sprintf("ssh:far.example:%d", port), "--public-url", "https://term.example")
	link = s.sees(hereLink)
	s.sees(fmt.Sprintf(`https://term\.example must lead to 127\.0\.0\.1:%d on far\.example`, port))
	if !strings.HasPrefix(link, "https://term.example/s/#") {
		t.Error(link)
	}
	r := must.Get(http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/s/", port), nil))(t) // as what ends TLS there would
	r.Host = "term.example"
	answer := must.Get(http.DefaultClient.Do(r))(t)
	if answer.Body.Close(); answer.StatusCode != 200 {
		t.Error(answer.Status)
	}
	_ = s.c.Process.Signal(os.Interrupt)
	s.ends(130)

	s = l.share("--via", "ssh:nowhere.example")
	s.sees("tether: ssh: ")
	s.ends(1)
}

func freePort(t *testing.T) int {
	t.Helper()
	l := must.Get(testkit.Listen())(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// sshTo makes ssh of these commands the real one, with the configuration of sshConfig.
func (l *lent) sshTo(t *testing.T) {
	t.Helper()
	config := sshConfig(t)
	ssh, _ := exec.LookPath("ssh")
	l.standIn("ssh", fmt.Sprintf("exec %s -F %s \"$@\"\n", ssh, config))
}

// By programs that speak the command lines of tailscale and cloudflared: the https
// address that they print is the link's.
func TestShareHereByStandIns(t *testing.T) {
	l := lendsNothing(t, "")
	asked := filepath.Join(t.TempDir(), "asked")
	const ends = "\ntrap 'exit 0' TERM INT\nwhile :; do sleep 1000 & wait $!; done\n"
	l.standIn("tailscale", `echo "$*" >>`+asked+`
echo "Available within your tailnet:"; echo; echo "https://laptop.tail0123.ts.net/"; echo "|-- proxy $2"; echo; echo "Press Ctrl+C to exit."`+ends)
	l.standIn("cloudflared", `echo "$*" >>`+asked+`
echo "2026-01-01T00:00:00Z INF Requesting new quick Tunnel on trycloudflare.com..." >&2
n=$(wc -l <`+asked+`)
echo "2026-01-01T00:00:01Z INF |  https://some-words-$n.trycloudflare.com                    |" >&2
[ -e `+asked+`.die ] && { rm `+asked+`.die; exit 1; }`+ends)
	asks := func(pattern string) {
		t.Helper()
		text, _ := os.ReadFile(asked)
		if !regexp.MustCompile(pattern).Match(text) {
			t.Errorf("the stand-in was called with %q, want %q", text, pattern)
		}
		_ = os.Remove(asked)
	}

	s := l.share("--via", "tailscale")
	if link := s.sees(hereLink); !strings.HasPrefix(link, "https://laptop.tail0123.ts.net/s/#") {
		t.Error(link)
	}
	s.sees("who can read what is shown .tailscale serve.: whoever has the link, on a device of your tailnet")
	asks(`^serve http://127\.0\.0\.1:\d+\n$`)
	s.family("tailscale", "tether-host")
	_ = s.c.Process.Kill()
	s.ends(-1)

	s = l.share("--via", "tailscale:funnel")
	s.sees(hereLink)
	s.sees("tailscale funnel.: whoever has the link, anywhere")
	asks(`^funnel http://127\.0\.0\.1:\d+\n$`)
	l.run("unshare", "web")
	s.ends(0)

	must.Do(t, os.WriteFile(asked+".die", nil, 0o600))
	s = l.share("--via", "cloudflared")
	s.sees(`(?m)^https://some-words-1\.trycloudflare\.com/s/#`)
	s.sees("and Cloudflare, where TLS ends: its operator can read and change what is shown")
	s.sees(`cloudflared: closed \(it has ended\); trying again in 1s`)
	s.sees("open again at another address; the former link does not work any more")
	s.sees(`(?m)^https://some-words-2\.trycloudflare\.com/s/#`)
	asks(`^tunnel --no-autoupdate --config /dev/null --url http://127\.0\.0\.1:\d+\n`)
	s.family("cloudflared", "tether-host")
	_ = s.c.Process.Signal(os.Interrupt)
	s.ends(130)

	// Without --via: the first that works, and none at last.
	l.standIn("tailscale", "echo 'not logged in' >&2; exit 1\n")
	s = l.share()
	s.sees(`no way by tailscale serve: tailscale: not logged in`)
	s.sees(`(?m)^https://some-words-1\.trycloudflare\.com/s/#`)
	_ = s.c.Process.Signal(os.Interrupt)
	s.ends(130)
	l.standIn("cloudflared", `echo '2026-01-01T00:00:00Z ERR failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": no route' >&2; exit 1`+"\n")
	s = l.share()
	s.sees(`no way by cloudflared: .*no route`)
	s.sees(`(?m)^http://127\.0\.0\.1:\d+/s/#`)
	s.sees("no other way works")
	_ = s.c.Process.Signal(os.Interrupt)
	s.ends(130)
	s = l.share("--via", "cloudflared")
	s.sees("tether: cloudflared: .*no route")
	s.ends(1)
}
