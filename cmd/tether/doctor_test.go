package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/local"
	"tether/installer"
	"tether/internal/testkit"
	"tether/platform/dirs"
	"tether/platform/keyring"
	"tether/platform/shell"
)

// healthy is a machine on which all is well, without a daemon.
func healthy(t *testing.T) *patient {
	home := testkit.Home(t)
	p := newPatient(dirsOf(home), nil)
	p.down = local.ErrNotRunning
	p.free = func(string) (uint64, error) { return 1 << 40, nil }
	p.files = func() (uint64, error) { return 1 << 20, nil }
	p.root = func() bool { return false }
	p.login = func(context.Context) ([]string, error) { return []string{"PATH=/bin"}, nil }
	p.keyring = keyring.New(&box{})
	p.service = func(context.Context) (installer.Status, error) {
		return installer.Status{Installed: true, Enabled: true, State: "running"}, nil
	}
	return p
}

// box is a keyring in memory, with the faults of real ones.
type box struct {
	mu    sync.Mutex
	text  string
	err   error
	delay func()
}

func (b *box) Set(_, _, text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = text
	return b.err
}

func (b *box) Get(_, _ string) (string, error) {
	if b.delay != nil {
		b.delay()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text, b.err
}

func (b *box) Delete(_, _ string) error { return nil }

// Each check finds what it is for, says why and what to do.
func TestDoctorFinds(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	kept := func(store, why string) func(*patient) {
		return func(p *patient) { p.status.Secrets = &local.SecretStore{Store: store, Path: "/x/hosts.json", Why: why} }
	}
	for _, c := range []struct {
		name   string
		look   func(context.Context, *patient) []check
		ill    func(*patient)
		result checkResult
		reason string
	}{
		{"a full disk", checkDisk, func(p *patient) { p.free = func(string) (uint64, error) { return 1 << 20, nil } }, checkWarn, "1 MiB are free"},
		{"few files", checkFiles, func(p *patient) { p.files = func() (uint64, error) { return 256, nil } }, checkWarn, "may open 256"},
		{"no console", checkPTY, func(p *patient) { p.console = func() (string, error) { return "", errors.New("too old") } }, checkFail, "too old"},
		{"root", checkRoot, func(p *patient) { p.root = func() bool { return true } }, checkWarn, "a daemon that it starts would"},
		{"a daemon of root", checkRoot, func(p *patient) { p.down, p.status.Root = nil, &local.Root{} }, checkWarn, "lends only what it is asked to"},
		{"a daemon of root that lends", checkRoot, func(p *patient) { p.down, p.status.Root = nil, &local.Root{Lends: true} }, checkWarn, "lends as configured"},
		{"a keyring that is not there", checkKeyring, func(p *patient) { p.keyring = keyring.New(&box{err: errors.New("no D-Bus")}) }, checkWarn, "no D-Bus"},
		{"a locked keyring", checkKeyring, func(p *patient) { p.keyring = keyring.New(&box{delay: func() { <-never }}) }, checkWarn, "is it locked?"},
		{"a locked keyring with our secrets", checkKeyring, func(p *patient) {
			kept(local.StoreKeyring, "")(p)
			p.keyring = keyring.New(&box{delay: func() { <-never }})
		}, checkFail, "secrets are in it"},
		{"a slow keyring", checkKeyring, func(p *patient) {
			p.keyring = keyring.New(&box{delay: func() { <-time.After(slowKeyring + 50*time.Millisecond) }})
		}, checkWarn, ""}, // how slow, or that it does not answer: machines differ
		{"a file instead", checkKeyring, kept(local.StoreFile, "the keyring cannot be used: no D-Bus"), checkWarn, "the keyring can be used by now"},
		{"no login shell", checkLogin, func(p *patient) {
			p.login = func(context.Context) ([]string, error) { return nil, errors.New("nu says no") }
		}, checkFail, "nu says no"},
		{"a shell that cannot be asked", checkLogin, func(p *patient) {
			p.login = func(context.Context) ([]string, error) { return nil, shell.ErrUnsupported }
		}, checkWarn, "cannot be asked"},
		{"a login without PATH", checkLogin, func(p *patient) {
			p.login = func(context.Context) ([]string, error) { return []string{"PATH=", "A=1"}, nil }
		}, checkFail, "no PATH"},
		{"no service", checkService, func(p *patient) {
			p.service = func(context.Context) (installer.Status, error) { return installer.Status{}, nil }
		}, checkWarn, "none is installed"},
		{"no daemon", checkDaemon, func(*patient) {}, checkWarn, "it does not run"},
		{"another version", checkDaemon, func(p *patient) { p.down, p.status.Version = nil, "0.0.1" }, checkWarn, "0.0.1"},
		{"a daemon that hangs", checkDaemon, func(p *patient) { p.down = context.DeadlineExceeded }, checkFail, "does not answer"},
		{"what the daemon complains of", checkDegraded, func(p *patient) { p.status.Degraded = []local.Degraded{{Cause: "log", Text: "full"}} }, checkWarn, "full"},
		{"no host", checkHosts, func(p *patient) { p.down = nil }, checkWarn, "none is paired"},
		{"something in the way", checkSockets, func(p *patient) { mkdir(t, agent.SocketPath(p.dirs)) }, checkFail, "in the way"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := healthy(t)
			t.Setenv(dirs.HomeVar, "") // the keyring is not looked at otherwise
			c.ill(p)
			all := c.look(t.Context(), p)
			if len(all) != 1 || all[0].Result != c.result || !strings.Contains(all[0].Reason, c.reason) || all[0].Fix == "" {
				t.Errorf("%+v, want %s because of %q, and what to do", all, c.result, c.reason)
			}
		})
	}
}

// On a machine on which all is well they say so.
func TestDoctorIsContent(t *testing.T) {
	p := healthy(t)
	t.Setenv(dirs.HomeVar, "")
	for _, look := range []func(context.Context, *patient) []check{checkDisk, checkFiles, checkRoot, checkLogin, checkService, checkSockets} {
		if all := look(t.Context(), p); len(all) != 1 || all[0].Result != checkOK || all[0].Reason == "" || all[0].Fix != "" {
			t.Errorf("%+v", all)
		}
	}
	for store, why := range map[string]string{local.StoreKeyring: "", local.StoreFile: saidSo, "": ""} {
		p.status.Secrets = &local.SecretStore{Store: store, Why: why}
		if store == "" {
			p.status.Secrets = nil
		}
		if all := checkKeyring(t.Context(), p); len(all) != 1 || all[0].Result == checkFail || all[0].Result == checkSkip || store == local.StoreFile && all[0].Fix != "" {
			t.Errorf("secrets in %q: %+v", store, all)
		}
	}
	p.status.Secrets = nil
	t.Setenv(dirs.HomeVar, "/somewhere")
	if all := checkKeyring(t.Context(), p); len(all) != 1 || all[0].Result != checkSkip {
		t.Errorf("with a home of its own: %+v", all)
	}
}

// What was killed has left its socket, which the next daemon takes away.
func TestDoctorFindsStaleSockets(t *testing.T) {
	testkit.Unix(t, "a socket that is left behind is a file there")
	p := healthy(t)
	leave := func(path string) {
		mkdir(t, filepath.Dir(path))
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	want := func(reason string) {
		t.Helper()
		all := checkSockets(t.Context(), p)
		if len(all) != 1 || all[0].Result != checkWarn || !strings.Contains(all[0].Reason, reason) || all[0].Fix == "" {
			t.Errorf("%+v, want a warning of %q", all, reason)
		}
	}
	leave(agent.SocketPath(p.dirs))
	want("a daemon that was killed")
	holder := filepath.Join(p.dirs.Runtime, "h", "pty-abcdefgh.sock")
	leave(holder)
	p.down = nil // a daemon that runs removes none
	want("1 sockets were left behind")
	if _, err := os.Lstat(holder); err != nil {
		t.Errorf("looking has removed it: %v", err)
	}
}

// A host whose clock differs is told of.
func TestDoctorComparesClocks(t *testing.T) {
	for skew, want := range map[time.Duration]checkResult{0: checkOK, -time.Hour: checkWarn, 26 * time.Hour: checkWarn} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(skew).UTC().Format(http.TimeFormat))
		}))
		all := checkClock(t.Context(), "host x", &local.HostStatus{URL: "ws" + strings.TrimPrefix(s.URL, "http")})
		s.Close()
		if skew == 0 && len(all) == 1 && all[0].Result == checkWarn {
			t.Skipf("this machine took %s for an answer", all[0].Reason)
		}
		if len(all) != 1 || all[0].Result != want || (want == checkOK) != (all[0].Fix == "") {
			t.Errorf("%s: %+v, want %s", skew, all, want)
		}
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}
