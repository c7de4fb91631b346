package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/proc"
)

func TestOnlyOne(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	first := start(t, agent.Config{Dirs: d})
	second := must.Get(agent.New(agent.Config{Dirs: d, AllowRoot: true}))(t)
	var running *agent.RunningError
	if err := second.Run(t.Context()); !errors.As(err, &running) || running.Pid != os.Getpid() {
		t.Errorf("a second daemon: %v, want a RunningError with this process", err)
	}
	if _, err := first.client.Status(t.Context()); err != nil {
		t.Errorf("the first one afterwards: %v", err)
	}
	first.end()
	if _, err := first.client.Status(t.Context()); !errors.Is(err, localclient.ErrNotRunning) {
		t.Errorf("after its end: %v", err)
	}
	start(t, agent.Config{Dirs: d})
}

// A lock whose file was replaced under the daemon is reported, with the holder of the new
// one, until that is corrected.
func TestLockIsReplaced(t *testing.T) {
	testkit.Leaks(t)
	d := home(t)
	one := start(t, agent.Config{Dirs: d})
	about := func() string {
		t.Helper()
		s := must.Get(one.client.Status(t.Context()))(t)
		for _, g := range s.Degraded {
			if g.Cause == agent.LockCause {
				return g.Text
			}
		}
		return ""
	}
	if text := about(); text != "" {
		t.Errorf("at first: %s", text)
	}
	path := filepath.Join(d.Runtime, localapi.LockName)
	must.Do(t, os.Rename(path, path+".kept"))
	if text := about(); !strings.Contains(text, "removed or replaced") || strings.Contains(text, "process") {
		t.Errorf("removed: %q", text)
	}
	other := must.Get(ipc.Lock(path))(t)
	if text := about(); !strings.Contains(text, fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("replaced: %q", text)
	}
	must.Do(t, errors.Join(other.Close(), os.Remove(path), os.Rename(path+".kept", path)))
	if text := about(); text != "" {
		t.Errorf("put right: %s", text)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, level := range []string{"loud", "trace", "fatal", "-1"} {
		if _, err := agent.New(agent.Config{LogLevel: level}); err == nil {
			t.Errorf("log level %q was accepted", level)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root is refused")
	}
	a := must.Get(agent.New(agent.Config{Dirs: home(t)}))(t)
	if err := a.Run(t.Context()); !errors.Is(err, agent.ErrRoot) {
		t.Errorf("as root: %v", err)
	}
}

func TestEndsWithEverything(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	testkit.Leaks(t)
	_, terminals := shutDown(t, []string{"sh", "-c", "trap '' TERM HUP; sleep 1000 & wait; sleep 1000"})
	for _, tm := range terminals {
		if left, err := proc.Tagged(proc.Tag(tm.ID)); err == nil && len(left) > 0 {
			t.Errorf("%s left %v", tm.ID, left)
		}
	}
}

// observe follows a host and returns the exit of the terminal with the title, once it is
// seen.
func observe(t *testing.T, url, title string) (seen <-chan ahp.TerminalExited, shown <-chan struct{}) {
	t.Helper()
	o := client.NewObserver(client.ObserverOptions{Endpoint: client.Endpoint{URL: url}, ClientID: "observer"})
	ctx, cancel := context.WithCancel(context.Background())
	exits, there, done := make(chan ahp.TerminalExited, 1), make(chan struct{}), make(chan struct{})
	go func() { _ = o.Run(ctx); close(done) }()
	go func() {
		listed := false
		show := sync.OnceFunc(func() { close(there) })
		for {
			e, err := o.Next(ctx)
			if err != nil {
				return
			}
			for _, i := range e.Terminals {
				if i.Title == title && !listed {
					listed = true
					o.Follow(i.Resource)
				}
			}
			if e.Kind == client.Resync {
				show()
			}
			if x, ok := e.Action.(ahp.TerminalExited); ok {
				exits <- x
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return exits, there
}

// The hosts of a daemon that ends are told how its terminals ended, rather than that
// their owner is gone.
func TestHostsHearOfTheEnd(t *testing.T) {
	testkit.Leaks(t)
	url := startHost(t, "")
	a := start(t, agent.Config{Dirs: home(t)})
	must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: url}))(t)
	exits, shown := observe(t, url, "told")
	must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/"), Name: "told"}))(t)
	<-shown
	a.stop()
	select {
	case x := <-exits:
		if x.ExitCode == nil || *x.ExitCode != 143 && filepath.Separator == '/' {
			t.Errorf("the observer saw the exit %v, want 143", x.ExitCode)
		}
	case <-time.After(patience):
		t.Error("the observer saw no exit")
	}
}

func TestLogHoldsNoContent(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	url := startHost(t, "token-canary")
	d := home(t)
	a := start(t, agent.Config{Dirs: d, LogLevel: "debug"})
	must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: url, Token: "token-canary"}))(t)
	a.status("the host is online", func(s localapi.Status) bool { return s.Hosts[0].State == "online" })
	tm := must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"sh", "-c", "read x; echo out-canary"}, Env: append(os.Environ(), "E=env-canary"), Cwd: testkit.Abs("/")}))(t)
	at := must.Get(a.client.Attach(t.Context(), tm.ID, localclient.AttachOptions{}))(t)
	defer at.Close()
	must.Do(t, at.Write(t.Context(), []byte("typed-canary\r")))
	a.status("it has exited", func(s localapi.Status) bool { return s.Terminals.Exited == 1 })
	must.Get(a.client.Unpair(t.Context(), "local"))(t)
	a.end()
	log, err := os.ReadFile(agent.LogPath(d))
	if err != nil || !strings.Contains(string(log), `"message":"paired"`) {
		t.Errorf("log: %v\n%s", err, log)
	}
	if strings.Contains(string(log), "canary") {
		t.Errorf("the log holds what it must not:\n%s", log)
	}
}

func TestUnsafePlacesAreRefused(t *testing.T) {
	testkit.Unix(t, testkit.Modes)
	for _, c := range []struct {
		name  string
		spoil func(home string) error
		want  string
	}{
		{"runtime directory", func(h string) error { return errors.Join(os.MkdirAll(h+"/run", 0o700), os.Chmod(h+"/run", 0o755)) }, "chmod 700"},
		{"state directory", func(h string) error { return errors.Join(os.MkdirAll(h+"/state", 0o700), os.Chmod(h+"/state", 0o777)) }, "chmod 700"},
		{"state is a link", func(h string) error {
			return errors.Join(os.Mkdir(h+"/other", 0o700), os.Symlink(h+"/other", h+"/state"))
		}, "not a directory"},
		{"open log", func(h string) error { return file(h+"/state/daemon.log", "", 0o644) }, "chmod 600"},
		{"linked log", func(h string) error {
			return errors.Join(file(h+"/state/x", "", 0o600), os.Symlink("x", h+"/state/daemon.log"))
		}, "symbolic link"},
		{"open hosts", func(h string) error { return file(h+"/state/hosts.json", "{}", 0o640) }, "chmod 600"},
		{"hosts of the future", func(h string) error { return file(h+"/state/hosts.json", `{"version":2}`, 0o600) }, "version 2"},
		{"unknown key", func(h string) error {
			return file(h+"/state/hosts.json", `{"version":1,"hosts":[{"colour":1}]}`, 0o600)
		}, "colour"},
		{"a file for a socket", func(h string) error { return file(h+"/run/daemon.sock", "", 0o600) }, "not a socket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := home(t)
			must.Do(t, c.spoil(filepath.Dir(d.State)))
			a := must.Get(agent.New(agent.Config{Dirs: d, AllowRoot: true}))(t)
			if err := a.Run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q in it", err, c.want)
			}
		})
	}
}

func file(name, content string, mode os.FileMode) error {
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), mode), os.Chmod(name, mode))
}

func TestSpawnRequests(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	a := start(t, agent.Config{Dirs: home(t)})
	run := func(r localapi.SpawnRequest) (localapi.Terminal, error) {
		r.Cwd = testkit.Abs("/")
		if r.Env == nil {
			r.Env = []string{"PATH=" + os.Getenv("PATH")}
		}
		return a.client.Spawn(t.Context(), r)
	}
	for _, c := range []struct {
		name string
		r    localapi.SpawnRequest
		code localapi.Code
	}{
		{"no command", localapi.SpawnRequest{}, localapi.CodeBadRequest},
		{"a NUL in an argument", localapi.SpawnRequest{Command: []string{"true", "a\x00b"}}, localapi.CodeBadRequest},
		{"a NUL in a variable", localapi.SpawnRequest{Command: []string{"true"}, Env: []string{"A=\x00"}}, localapi.CodeBadRequest},
		{"odd policy", localapi.SpawnRequest{Command: []string{"true"}, OnSlow: "stop"}, localapi.CodeBadRequest},
		{"unknown host", localapi.SpawnRequest{Command: []string{"true"}, LendTo: []string{"x"}}, localapi.CodeNotPaired},
		{"missing program", localapi.SpawnRequest{Command: []string{"/nonexistent"}}, localapi.CodeCannotStart},
	} {
		var e *localapi.Error
		if _, err := run(c.r); !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	tm := must.Get(run(localapi.SpawnRequest{Command: []string{"env"}, OnSlow: "hold",
		Env: []string{"PATH=" + os.Getenv("PATH"), "TETHER_TOKEN=x", "TETHER_HOME=/h", "=odd", "odd", "GOOD=1"}}))(t)
	body := must.Get(a.client.Read(t.Context(), tm.ID, localclient.ReadOptions{Follow: true}, nil))(t)
	defer body.Close()
	out := must.Get(io.ReadAll(body))(t)
	for text, want := range map[string]bool{"GOOD=1": true, "TERM=xterm-256color": true, "TETHER_HOME=/h": true, "TETHER_TERMINAL=" + tm.ID: true,
		"TETHER_TOKEN": false, "odd": false} {
		if strings.Contains(string(out), text) != want {
			t.Errorf("%q in the environment: %t, want %t:\n%s", text, !want, want, out)
		}
	}
}
