package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/ahp/client"
	"tether/host"
	"tether/host/rights"
	"tether/installer"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
	"tether/platform/keyring"
	"tether/platform/secret"
	"tether/platform/shell"
	"tether/vocab"
)

// healthy is a machine on which all is well, without a daemon.
func healthy(t *testing.T) *machine {
	home := testkit.Home(t)
	m := newMachine(Machine{Dirs: dirs.Dirs{Config: filepath.Join(home, "config"), State: filepath.Join(home, "state"), Runtime: filepath.Join(home, "run"), Cache: filepath.Join(home, "cache")}})
	m.down = localclient.ErrNotRunning
	m.free = func(string) (uint64, error) { return 1 << 40, nil }
	m.files = func() (uint64, error) { return 1 << 20, nil }
	m.root = func() bool { return false }
	m.login = func(context.Context) ([]string, error) { return []string{"PATH=/bin"}, nil }
	m.keyring = keyring.New(&box{})
	m.service = func(context.Context) (installer.Status, error) {
		return installer.Status{Installed: true, Enabled: true, State: "running"}, nil
	}
	return m
}

// notifies returns a change to a machine with a rule that sends to a receiver.
func notifies(to, problem string) func(*machine) {
	return func(m *machine) {
		m.down, m.desktop = nil, func() bool { return false }
		m.told = func(context.Context) (localapi.Notifications, error) {
			n := localapi.Notifications{Rules: []localapi.NotifyRule{{Name: "r", To: to}}}
			if to != "desktop" {
				n.Receivers = []localapi.NotifyReceiver{{Name: to, Problem: problem}}
			}
			return n, nil
		}
	}
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

// Each check finds its fault and names the reason and the remedy.
func TestDoctorFinds(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	kept := func(store, why string) func(*machine) {
		return func(m *machine) {
			m.status.Secrets = &localapi.SecretStore{Store: store, Path: "/x/hosts.json", Why: why}
		}
	}
	for _, c := range []struct {
		name   string
		look   func(context.Context, *machine) []Check
		ill    func(*machine)
		result Result
		reason string
	}{
		{"a full disk", checkDisk, func(m *machine) { m.free = func(string) (uint64, error) { return 1 << 20, nil } }, Warn, "1 MiB are free"},
		{"something in the place of a directory", checkWriting, func(m *machine) {
			mkdir(t, filepath.Dir(m.Dirs.State))
			must.Do(t, os.WriteFile(m.Dirs.State, nil, 0o600))
		}, Fail, "is not writable"},
		{"few files", checkFiles, func(m *machine) { m.files = func() (uint64, error) { return 256, nil } }, Warn, "256 per process"},
		{"no console", checkPTY, func(m *machine) { m.console = func() (string, error) { return "", errors.New("too old") } }, Fail, "too old"},
		{"root", checkRoot, func(m *machine) { m.root = func() bool { return true } }, Warn, "a daemon that it starts would too"},
		{"a daemon of root", checkRoot, func(m *machine) { m.down, m.status.Root = nil, &localapi.Root{} }, Warn, "lends only terminals that you name"},
		{"a daemon of root that lends", checkRoot, func(m *machine) { m.down, m.status.Root = nil, &localapi.Root{Lends: true} }, Warn, "lends terminals as configured"},
		{"a keyring that is not there", checkKeyring, func(m *machine) { m.keyring = keyring.New(&box{err: errors.New("no D-Bus")}) }, Warn, "no D-Bus"},
		{"a locked keyring", checkKeyring, func(m *machine) { m.keyring = keyring.New(&box{delay: func() { <-never }}) }, Warn, "check whether it is locked"},
		{"a locked keyring with our secrets", checkKeyring, func(m *machine) {
			kept(localapi.StoreKeyring, "")(m)
			m.keyring = keyring.New(&box{delay: func() { <-never }})
		}, Fail, "it holds the secrets"},
		{"a slow keyring", checkKeyring, func(m *machine) {
			m.keyring = keyring.New(&box{delay: func() { <-time.After(slowKeyring + 50*time.Millisecond) }})
		}, Warn, ""}, // how slow, or that it does not answer: machines differ
		{"a file instead", checkKeyring, kept(localapi.StoreFile, "no desktop keyring (no D-Bus)"), Warn, "a keyring is available now"},
		{"no login shell", checkLogin, func(m *machine) {
			m.login = func(context.Context) ([]string, error) { return nil, errors.New("nu says no") }
		}, Fail, "nu says no"},
		{"a shell that cannot be asked", checkLogin, func(m *machine) {
			m.login = func(context.Context) ([]string, error) { return nil, shell.ErrUnsupported }
		}, Warn, "cannot read the environment"},
		{"a login without PATH", checkLogin, func(m *machine) {
			m.login = func(context.Context) ([]string, error) { return []string{"PATH=", "A=1"}, nil }
		}, Fail, "no PATH"},
		{"no service", checkService, func(m *machine) {
			m.service = func(context.Context) (installer.Status, error) { return installer.Status{}, nil }
		}, Warn, "not installed"},
		{"no daemon", checkDaemon, func(*machine) {}, Warn, "not running"},
		{"another version", checkDaemon, func(m *machine) { m.down, m.status.Version = nil, "0.0.1" }, Warn, "0.0.1"},
		{"a daemon that hangs", checkDaemon, func(m *machine) { m.down = context.DeadlineExceeded }, Fail, "does not answer"},
		{"what the daemon complains of", checkDegraded, func(m *machine) { m.status.Degraded = []localapi.Degraded{{Cause: "log", Text: "full"}} }, Warn, "full"},
		{"a rule without a URL", checkDegraded, func(m *machine) {
			m.status.Degraded = []localapi.Degraded{{Cause: "notify phone", Text: "has no URL"}}
		}, Warn, "has no URL"},
		{"a history that outgrows its bound", checkHistory, func(m *machine) {
			m.status.History = &localapi.HistoryStatus{On: true, Bytes: 300 << 20, MaxBytes: 256 << 20}
		}, Warn, "more than"},
		{"a disk on which syncs are slow", checkHistory, func(m *machine) {
			m.status.History = &localapi.HistoryStatus{On: true, MaxBytes: 1, RoundMs: 3500}
		}, Warn, "only after 3.5 s"},
		{"a receiver that does not answer", checkNotify, notifies("phone", "cannot be reached"), Warn, "cannot be reached"},
		{"a rule for a desktop that is not there", checkNotify, notifies("desktop", ""), Warn, "no desktop here"},
		{"no host", checkHosts, func(m *machine) { m.down = nil }, Warn, "no host is paired"},
		{"something in the way", checkSockets, func(m *machine) { mkdir(t, agent.SocketPath(m.Dirs)) }, Fail, "blocks the socket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := healthy(t)
			t.Setenv(dirs.HomeVar, "") // the keyring is not looked at otherwise
			c.ill(m)
			all := c.look(t.Context(), m)
			if len(all) != 1 || all[0].Result != c.result || !strings.Contains(all[0].Reason, c.reason) || all[0].Fix == "" {
				t.Errorf("%+v, want %s because of %q, and what to do", all, c.result, c.reason)
			}
		})
	}
}

// On a machine on which all is well they say so.
func TestDoctorIsContent(t *testing.T) {
	m := healthy(t)
	t.Setenv(dirs.HomeVar, "")
	for _, look := range []func(context.Context, *machine) []Check{checkWriting, checkDisk, checkFiles, checkRoot, checkLogin, checkService, checkSockets} {
		if all := look(t.Context(), m); len(all) != 1 || all[0].Result != OK || all[0].Reason == "" || all[0].Fix != "" {
			t.Errorf("%+v", all)
		}
	}
	for want, is := range map[string]localapi.HistoryStatus{"off": {Keep: "0s"}, " of ": {On: true, Bytes: 1, MaxBytes: 2}} {
		m.status.History = &is
		if all := checkHistory(t.Context(), m); len(all) != 1 || all[0].Result != OK || !strings.Contains(all[0].Reason, want) || all[0].Fix != "" {
			t.Errorf("%+v", all)
		}
	}
	m.status.Degraded = []localapi.Degraded{{Cause: "history", Text: "full"}}
	if all := checkHistory(t.Context(), m); len(all) != 0 {
		t.Errorf("a trouble is told twice: %+v", all)
	}
	for store, why := range map[string]string{localapi.StoreKeyring: "", localapi.StoreFile: saidSo, "": ""} {
		m.status.Secrets = &localapi.SecretStore{Store: store, Why: why}
		if store == "" {
			m.status.Secrets = nil
		}
		if all := checkKeyring(t.Context(), m); len(all) != 1 || all[0].Result == Fail || all[0].Result == Skip || store == localapi.StoreFile && all[0].Fix != "" {
			t.Errorf("secrets in %q: %+v", store, all)
		}
	}
	m.status.Secrets = nil
	t.Setenv(dirs.HomeVar, "/somewhere")
	if all := checkKeyring(t.Context(), m); len(all) != 1 || all[0].Result != Skip {
		t.Errorf("with a home of its own: %+v", all)
	}
}

// A state directory on a disk that is full, or mounted for reading only, is found,
// whether it is there yet or not; nothing is left in it.
func TestDoctorWithoutADisk(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	disk, there := testkit.OnSmallDisk(t)
	if !there {
		return
	}
	m := healthy(t)
	finds := func(when, state string, result Result, reason string) {
		t.Helper()
		m.Dirs.State = filepath.Join(disk, state)
		all := checkWriting(t.Context(), m)
		if len(all) != 1 || all[0].Result != result || !strings.Contains(all[0].Reason, reason) || (all[0].Fix == "") != (result == OK) {
			t.Errorf("%s, in %s: %+v, want %s because of %q", when, state, all, result, reason)
		}
	}
	mkdir(t, filepath.Join(disk, "state"))
	for _, state := range []string{"state", "none"} {
		finds("with room", state, OK, "is writable")
	}
	_ = os.WriteFile(filepath.Join(disk, "filler"), make([]byte, 2<<20), 0o600) // as far as it goes
	finds("with a full disk", "state", Fail, "is not writable: no space left on device")
	must.Do(t, os.Remove(filepath.Join(disk, "filler")))
	testkit.Remount(t, disk, "ro")
	for _, state := range []string{"state", "none"} {
		finds("mounted for reading", state, Fail, "is not writable: read-only file system")
	}
	testkit.Remount(t, disk, "rw")
	for dir, want := range map[string]int{disk: 1, filepath.Join(disk, "state"): 0} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != want {
			t.Errorf("in %s it has left %v (%v)", dir, left, err)
		}
	}
}

// A killed daemon leaves its socket, which the next daemon removes.
func TestDoctorFindsStaleSockets(t *testing.T) {
	testkit.Unix(t, "a socket that is left behind is a file there")
	m := healthy(t)
	leave := func(path string) {
		mkdir(t, filepath.Dir(path))
		l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	want := func(reason string) {
		t.Helper()
		all := checkSockets(t.Context(), m)
		if len(all) != 1 || all[0].Result != Warn || !strings.Contains(all[0].Reason, reason) || all[0].Fix == "" {
			t.Errorf("%+v, want a warning of %q", all, reason)
		}
	}
	leave(agent.SocketPath(m.Dirs))
	want("a stale socket of a killed daemon")
	holder := filepath.Join(m.Dirs.Runtime, "h", "pty-abcdefgh.sock")
	leave(holder)
	m.down = nil // a daemon that runs removes none
	want("1 stale sockets")
	if _, err := os.Lstat(holder); err != nil {
		t.Errorf("looking has removed it: %v", err)
	}
}

// An obstacle to a link is found at its step, and the steps before it are reported as
// right. A pinned certificate is trusted as the link trusts it, and a configured proxy is
// used.
func TestDoctorFindsTheWay(t *testing.T) {
	silent := log.New(io.Discard, "", 0) // handshakes that come to nothing
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secured := httptest.NewUnstartedServer(http.NotFoundHandler())
	secured.Config.ErrorLog = silent
	secured.StartTLS()
	defer secured.Close()
	const nobody, otherPin = "127.0.0.1:1", "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	plain, behindTLS, pin := strings.Replace(web.URL, "http", "ws", 1), strings.Replace(secured.URL, "https", "wss", 1), client.PinOf(secured.Certificate()).String()
	for name, c := range map[string]struct {
		url, pin, proxy string
		paired          bool
		want            string // steps and their results
	}{
		"no such name":           {url: "wss://host.invalid", want: "DNS fail"},
		"nobody listens":         {url: "ws://" + nobody, want: "DNS ok, TCP fail"},
		"no TLS where it should": {url: strings.Replace(plain, "ws", "wss", 1), want: "DNS ok, TCP ok, TLS fail"},
		"a strange certificate":  {url: behindTLS, want: "DNS ok, TCP ok, TLS fail"},
		"another pin":            {url: behindTLS, pin: otherPin, want: "DNS ok, TCP ok, TLS fail"},
		"no WebSocket":           {url: plain, paired: true, want: "DNS ok, TCP ok, clock ok, WebSocket fail"},
		"none behind its pin":    {url: behindTLS, pin: pin, paired: true, want: "DNS ok, TCP ok, TLS ok, clock ok, WebSocket fail"},
		"a proxy that is not":    {url: "wss://host.invalid", proxy: "http://" + nobody, want: "proxy fail"},
		"none behind a proxy":    {url: "wss://host.invalid", proxy: "http://user:canary@" + web.Listener.Addr().String(), paired: true, want: "proxy ok, WebSocket fail"},
	} {
		t.Run(name, func(t *testing.T) {
			m := healthy(t)
			m.proxy = func(*url.URL) *url.URL {
				if c.proxy == "" {
					return nil
				}
				return must.Get(url.Parse(c.proxy))(t)
			}
			if c.paired {
				must.Do(t, secret.Dir(m.Dirs.State))
				text := fmt.Sprintf(`{"version":1,"hosts":[{"name":"x","url":%q,"pin":%q,"client_id":"me"}]}`, c.url, c.pin)
				must.Do(t, secret.WriteFile(filepath.Join(m.Dirs.State, "hosts.json"), []byte(text)))
			}
			all := checkHost(t.Context(), m, &localapi.HostStatus{Name: "x", URL: c.url, Pin: c.pin, State: "waiting"})
			if all[0].Result != Fail || all[0].Name != "host x" {
				t.Errorf("the link: %+v", all[0])
			}
			var got []string
			for _, one := range all[1:] {
				got = append(got, strings.TrimPrefix(one.Name, "host x: ")+" "+string(one.Result))
				if one.Reason == "" || (one.Fix == "") != (one.Result == OK) || strings.Contains(one.Reason, "canary") {
					t.Errorf("%+v", one)
				}
				if c.pin == otherPin && one.Result == Fail && !strings.Contains(one.Fix, "--pin") {
					t.Errorf("what to do about another pin: %+v", one)
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("the way: %s, want %s", text, c.want)
			}
		})
	}
}

// A host whose clock differs is told of.
func TestDoctorComparesClocks(t *testing.T) {
	for skew, want := range map[time.Duration]Result{0: OK, -time.Hour: Warn, 26 * time.Hour: Warn} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(skew).UTC().Format(http.TimeFormat))
		}))
		all := checkClock(t.Context(), "host x", &localapi.HostStatus{URL: "ws" + strings.TrimPrefix(s.URL, "http")})
		s.Close()
		if skew == 0 && len(all) == 1 && all[0].Result == Warn {
			t.Skipf("this machine took %s for an answer", all[0].Reason)
		}
		if len(all) != 1 || all[0].Result != want || (want == OK) != (all[0].Fix == "") {
			t.Errorf("%s: %+v, want %s", skew, all, want)
		}
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	must.Do(t, os.MkdirAll(dir, 0o700))
}

// lenders admits clients with a token: "machine" may lend, "observer" only watch.
type lenders struct{}

func (lenders) Authenticate(token string) (rights.Principal, bool) {
	role := rights.Role(token)
	return rights.Principal{Name: token, Role: role}, role == rights.RoleMachine || role == rights.RoleObserver
}

func (l lenders) Known(token string) (rights.Principal, bool) { return l.Authenticate(token) }

// doctor names a token with which nothing can be lent, and the remedy; if each step
// works, the fix is that of the link's state.
func TestDoctorLooksAtTheToken(t *testing.T) {
	h := host.New(host.Options{Access: lenders{}})
	defer h.Close()
	web := httptest.NewServer(h)
	defer web.Close()
	address := strings.Replace(web.URL, "http", "ws", 1)
	for _, c := range []struct{ token, state, reason, fix, link string }{
		{"observer", "refused", "the token may only observe", "--role machine", "see the checks below"},
		{"nobody", "waiting", "the host refuses the token", "tether pair " + address + " --token-file FILE", "see the checks below"},
		{"machine", "refused", "", "", "with a token that may share terminals"},
		{"machine", "unsupported", "", "", "use a host that accepts terminals of other machines"},
		{"machine", "waiting", "", "", "tether host retry x"},
	} {
		t.Run(c.token+" "+c.state, func(t *testing.T) {
			m := healthy(t)
			m.proxy = func(*url.URL) *url.URL { return nil }
			must.Do(t, secret.Dir(m.Dirs.State))
			text := fmt.Sprintf(`{"version":1,"hosts":[{"name":"x","url":%q,"token":%q,"client_id":"me"}]}`, address, c.token)
			must.Do(t, secret.WriteFile(filepath.Join(m.Dirs.State, "hosts.json"), []byte(text)))
			all := checkHost(t.Context(), m, &localapi.HostStatus{Name: "x", URL: address, State: c.state, Lent: []vocab.Lent{{ID: "pty-1"}}, NextRetry: time.Now().Add(23 * time.Hour)})
			if all[0].Result != Fail || !strings.Contains(all[0].Fix, c.link) || !strings.Contains(all[0].Reason, "; 1 shared terminals are not visible there") ||
				strings.Contains(all[0].Reason, "next attempt in ") != (c.state == "unsupported") {
				t.Errorf("the link: %+v", all[0])
			}
			last := all[len(all)-1]
			want := Check{Name: "host x: token", Result: Fail, Reason: c.reason}
			if c.reason == "" {
				want = Check{Name: "host x: WebSocket", Result: OK, Reason: "the host accepts this machine"}
			}
			if last.Name != want.Name || last.Result != want.Result || last.Reason != want.Reason || !strings.Contains(last.Fix, c.fix) {
				t.Errorf("the last step: %+v, want %+v with the fix %q", last, want, c.fix)
			}
		})
	}
	up := &localapi.HostStatus{Name: "x", URL: address, State: "online", Lent: []vocab.Lent{{ID: "pty-1", There: true}, {ID: "pty-2", Problem: "the host has too many"}}}
	if all := checkHost(t.Context(), healthy(t), up); all[0].Result != Warn || !strings.Contains(all[0].Reason, "pty-2 is not visible there: the host has too many") || !strings.Contains(all[0].Fix, "tether unlend pty-2") {
		t.Errorf("a terminal that is not there: %+v", all[0])
	}
}

// What cannot be done here is no remedy.
func TestNoServiceManager(t *testing.T) {
	m := healthy(t)
	if c := checkDaemon(t.Context(), m)[0]; !strings.Contains(c.Fix, "tether service install") {
		t.Errorf("where services are: %+v", c)
	}
	m.service = func(context.Context) (installer.Status, error) { return installer.Status{}, installer.ErrNoManager }
	if c := checkDaemon(t.Context(), m)[0]; !strings.Contains(c.Fix, "tether run") || strings.Contains(c.Fix, "service") {
		t.Errorf("where none are: %+v", c)
	}
}

// Errors point to pages where packages and archives put them.
func TestPageIn(t *testing.T) {
	const page = "docs/CONFIG.md"
	for _, c := range []struct{ program, at string }{
		{"usr/bin", "usr/share/doc/tether/docs/CONFIG.md"},
		{"tether_1_linux", "tether_1_linux/docs/CONFIG.md"},
	} {
		root := t.TempDir()
		program, at := filepath.Join(root, filepath.FromSlash(c.program)), filepath.Join(root, filepath.FromSlash(c.at))
		mkdir(t, program)
		if got := pageIn(program, page); got != page {
			t.Errorf("%s: %q where there is none", c.program, got)
		}
		mkdir(t, filepath.Dir(at))
		must.Do(t, os.WriteFile(at, nil, 0o600))
		if got := pageIn(program, page); got != at {
			t.Errorf("%s: %q, want %q", c.program, got, at)
		}
	}
}
