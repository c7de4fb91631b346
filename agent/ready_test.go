package agent_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/secret"
)

// listens is a server that, once the gate sends no more, listens on an address, and
// answers 503, and after a request for /go 200.
func listens(address, gate string) {
	if conn, err := net.Dial("tcp", gate); err == nil {
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("listens on", l.Addr())
	var good atomic.Bool
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/go" {
			good.Store(true)
		}
		if !good.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
}

// freePort is a TCP port that nobody has now.
func freePort(t *testing.T) int {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// declared is how a declared terminal is.
func (d *daemon) declared(name string) (x localapi.Declared) {
	d.t.Helper()
	list := must.Get(d.client.List(d.t.Context()))(d.t)
	for _, x := range list.Declared {
		if x.Name == name {
			return x
		}
	}
	d.t.Fatalf("%s is not declared: %+v", name, list.Declared)
	return x
}

func (d *daemon) awaitReady(name, ready string) localapi.Declared {
	d.t.Helper()
	var x localapi.Declared
	testkit.Eventually(d.t, patience, name+" is "+ready, func() bool { x = d.declared(name); return string(x.Ready) == ready })
	return x
}

// Each kind of condition, at a real program: not before it holds; terminals that need
// this one start then.
func TestReadiness(t *testing.T) {
	self := must.Get(os.Executable())(t)
	if _, err := proc.Listens(proc.Terminal{Pid: os.Getpid()}, 1); err != nil {
		t.Logf("this system does not tell who listens: %v", err)
	}
	for name, c := range map[string]struct {
		ready func(port int, file string) config.Ready
		// late is what makes it hold, after the program listens; nil: that does.
		late func(port int, file string) error
	}{
		"port":    {func(port int, _ string) config.Ready { return config.Ready{Port: config.Port(port)} }, nil},
		"pattern": {func(int, string) config.Ready { return config.Ready{Pattern: "^listens on 127"} }, nil},
		"http": {func(port int, _ string) config.Ready {
			return config.Ready{HTTP: "http://localhost:" + strconv.Itoa(port) + "/health"}
		}, func(port int, _ string) error {
			r, err := http.Get("http://127.0.0.1:" + strconv.Itoa(port) + "/go")
			if err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
			return err
		}},
		"command": {func(_ int, file string) config.Ready { return config.Ready{Command: []string{self, "exists", file}} },
			func(_ int, file string) error { return os.WriteFile(file, nil, 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			port, file := freePort(t), filepath.Join(t.TempDir(), "go")
			gate := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
			defer gate.Close()
			settings := config.Default()
			settings.Terminal = []config.Declared{
				{Name: "web", Command: testkit.Sleep(), Needs: []string{"db"}},
				{Name: "db", Command: []string{self, "listens", "127.0.0.1:" + strconv.Itoa(port), gate.Addr().String()}, Ready: c.ready(port, file)},
			}
			d := start(t, agent.Config{Dirs: home(t), Settings: &settings})
			db := d.awaitReady("db", "starting")
			testkit.Eventually(t, patience, "web waits", func() bool { return d.declared("web").Waits == "db is starting" })
			if web := d.declared("web"); web.State != "blocked" || web.ID != "" {
				t.Errorf("%+v", web)
			}
			conn := must.Get(gate.Accept())(t)
			conn.Close()
			if c.late != nil {
				testkit.Eventually(t, patience, "it listens", func() bool {
					conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
					if err == nil {
						conn.Close()
					}
					return err == nil
				})
				if got := d.declared("db"); got.Ready != "starting" {
					t.Errorf("before the condition holds: %+v", got)
				}
				must.Do(t, c.late(port, file))
			}
			db = d.awaitReady("db", "ready")
			testkit.Eventually(t, patience, "web runs", func() bool { return d.declared("web").State == "running" })
			one, err := d.client.Find(t.Context(), db.ID)
			if err != nil || one.Ready != "ready" || one.ReadyWhy != db.ReadyWhy || db.ReadyWhy == "" {
				t.Errorf("%+v, %v; declared %+v", one, err, db)
			}
			if s := d.status("nothing is not ready", func(s localapi.Status) bool { return s.Terminals.NotReady == 0 }); s.Terminals.Running != 2 {
				t.Errorf("%+v", s.Terminals)
			}
		})
	}
}

// A declared terminal with a port gets it in its command and its condition, and keeps it
// when it is restarted.
func TestDeclaredPort(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dirs := home(t)
	text := fmt.Sprintf("[[terminal]]\nname = \"web\"\ncommand = [%q, \"listens\", \"127.0.0.1:{port}\", \"127.0.0.1:1\"]\nport = \"auto\"\nready = {port = \"{port}\"}\n", self)
	err = errors.Join(secret.Dir(dirs.Config), os.WriteFile(config.Path(dirs), []byte(text), 0o600))
	settings, err2 := config.Load(config.Path(dirs))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	d := start(t, agent.Config{Dirs: dirs, Settings: &settings})
	first := 0
	for range 3 {
		web := d.awaitReady("web", "ready")
		x, err := d.client.Find(t.Context(), web.ID)
		if err != nil || x.Port < 3000 || web.ReadyWhy != "it listens on port "+strconv.Itoa(x.Port) || x.Command[2] != "127.0.0.1:"+strconv.Itoa(x.Port) {
			t.Errorf("port %d, %q, %q, %v", x.Port, x.Command, web.ReadyWhy, err)
		}
		if first = cmp.Or(first, x.Port); x.Port != first {
			t.Errorf("port %d, and %d before", x.Port, first)
		}
		if _, err := d.client.Declare(t.Context(), localapi.DeclareRequest{Do: localapi.DeclareRestart, Names: []string{"web"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// Another program on the port does not make it ready, and the limit of time says so.
func TestSomebodyElsesPort(t *testing.T) {
	if _, err := proc.Listens(proc.Terminal{Pid: os.Getpid()}, 1); err != nil {
		t.Skipf("this system does not tell who listens: %v", err)
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	settings := config.Default()
	settings.Terminal = []config.Declared{
		{Name: "db", Command: testkit.Sleep(), Ready: config.Ready{Port: config.Port(port), Timeout: config.Duration(time.Second)}},
		{Name: "web", Command: testkit.Sleep(), Needs: []string{"db"}},
	}
	d := start(t, agent.Config{Dirs: home(t), Settings: &settings})
	db := d.awaitReady("db", "failed")
	if want := fmt.Sprintf("not ready within 1s: no program of it listens on port %d", port); db.ReadyWhy != want || db.State != "running" {
		t.Errorf("%+v, want %s", db, want)
	}
	testkit.Eventually(t, patience, "what needs it says why it waits", func() bool { return strings.Contains(d.declared("web").Waits, "db is not ready within 1s") })
	if s := d.status("one is not ready", func(s localapi.Status) bool { return s.Terminals.NotReady == 1 }); s.Terminals.Running != 1 {
		t.Errorf("%+v", s.Terminals)
	}
}
