package local_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/agent/ports"
	"tether/agent/start"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/pty"
)

// patience is how long a test waits for an expected event.
const patience = testkit.Patience

// fakeDaemon is the rest of a daemon: it records its calls.
type fakeDaemon struct {
	mu    sync.Mutex
	asked []string
	specs []start.Request
	hosts []localapi.HostStatus // of Status
	// checked are the names that CheckAudience was asked about, by host; refuses is its
	// answer.
	checked map[string][]string
	refuses error
	told    int   // calls of AudienceTold
	takes   error // the answer to TakesTerminal
	noPorts error // the answer to TakesPorts
	err     error // the answer to Pair and Unpair
}

func (d *fakeDaemon) note(what string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, what)
	return d.err
}

func (d *fakeDaemon) Status() localapi.Status {
	return localapi.Status{SchemaVersion: localapi.SchemaVersion, Running: true, Pid: 7, Hosts: append([]localapi.HostStatus{}, d.hosts...)}
}

func (d *fakeDaemon) Environment(context.Context, bool) ([]string, error) {
	return []string{"A=1"}, nil
}

func (d *fakeDaemon) Spec(_ context.Context, r start.Request) (term.Spec, error) {
	d.mu.Lock()
	d.specs = append(d.specs, r)
	d.mu.Unlock()
	return term.Spec{Command: r.Command, Name: r.Name, Cwd: r.Cwd, Env: r.Env, Size: term.Size{Cols: r.Cols, Rows: r.Rows}, Private: r.Private, Feed: r.Feed}, nil
}

func (d *fakeDaemon) Pair(_ context.Context, r localapi.PairRequest) (localapi.HostStatus, error) {
	return localapi.HostStatus{Name: r.Name, URL: r.URL}, d.note("pair " + r.Name)
}

func (d *fakeDaemon) Offer(_ context.Context, r localapi.PairRequest) (localapi.PairOffer, error) {
	return localapi.PairOffer{ID: "1", Code: "123456"}, d.note("offer " + r.URL)
}

func (d *fakeDaemon) Finish(_ context.Context, id string) (localapi.HostStatus, error) {
	return localapi.HostStatus{Name: "host"}, d.note("finish " + id)
}

func (d *fakeDaemon) ChangeHost(_ context.Context, name string, c localapi.HostChange) (localapi.HostStatus, error) {
	return localapi.HostStatus{Name: cmp.Or(c.Name, name), Default: c.Default}, d.note("change " + name)
}

func (d *fakeDaemon) LinkPrivate(_ context.Context, at localapi.PrivateHost, id term.ID) (string, func(), error) {
	return "here", func() { _ = d.note("left " + at.URL) }, d.note("link " + at.URL)
}

func (d *fakeDaemon) Unpair(_ context.Context, name string) (localapi.Unpaired, error) {
	return localapi.Unpaired{}, d.note("unpair " + name)
}
func (d *fakeDaemon) HandOver() localapi.HandOver {
	_ = d.note("hand over")
	return localapi.HandOver{Kept: 1}
}
func (d *fakeDaemon) Shutdown() { _ = d.note("shutdown") }

// world is a server on a socket, with terminals whose children the test plays.
type world struct {
	t      *testing.T
	pool   *term.Pool
	server *local.Server
	daemon *fakeDaemon
	socket string
	client *localclient.Client

	children chan *testkit.Child // started ones
}

// serve starts a server that ends with the test. Zero options mean defaults.
func serve(t *testing.T, o local.Options, terminals term.Options) *world {
	t.Helper()
	return serveConfined(t, o, terminals, nil)
}

// addStarter adds a Starter to a server's options, with the daemon's environment.
func addStarter(t *testing.T, o *local.Options, d *fakeDaemon, confine func(term.Actor, *term.Spec) error) {
	t.Helper()
	if o.Policy == nil {
		var err error
		if o.Policy, err = policy.New(policy.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	o.Starter = start.New(start.Options{Access: o.Access, Policy: o.Policy, Spec: d.Spec, Environment: d.Environment, Confine: confine, Ports: ports.New(ports.Options{})})
}

// serveConfined is serve, with a function that confines agents' commands.
func serveConfined(t *testing.T, o local.Options, terminals term.Options, confine func(term.Actor, *term.Spec) error) *world {
	t.Helper()
	testkit.Leaks(t)
	w := &world{t: t, daemon: &fakeDaemon{}, children: make(chan *testkit.Child, 64)}
	w.socket = filepath.Join(testkit.Home(t), "run", "daemon.sock")
	if terminals.Start == nil {
		terminals.Start = w.start
	}
	w.pool = term.NewPool(terminals)
	o.Access, o.Daemon, o.Hosts = w.pool.As, w.daemon, w.daemon
	addStarter(t, &o, w.daemon, confine)
	w.server = local.NewServer(o)
	l := must.Get(ipc.Listen(w.socket))(t)
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(l) }()
	w.client = localclient.New(w.socket)
	t.Cleanup(func() {
		w.client.Close()
		if err := w.server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.pool.Close(ctx); err != nil {
			t.Errorf("close the pool: %v", err)
		}
	})
	return w
}

// start gives a terminal a child that the test plays.
func (w *world) start(_ term.ID, c pty.Command) (term.PTY, error) {
	if c.Path == "missing" {
		return nil, &pty.StartError{What: "program", Name: c.Path, Err: context.Canceled}
	}
	child := testkit.NewChild()
	w.children <- child
	return child, nil
}

// spawn starts a terminal called name.
func (w *world) spawn(name string) (localapi.Terminal, *testkit.Child) {
	w.t.Helper()
	tm := must.Get(w.client.Spawn(w.t.Context(), localapi.SpawnRequest{Command: []string{"x", "-y"}, Name: name, Cwd: testkit.Abs("/")}))(w.t)
	return tm, <-w.children
}

// dial opens a bare connection.
func (w *world) dial() net.Conn {
	w.t.Helper()
	conn := must.Get(ipc.Dial(w.t.Context(), w.socket))(w.t)
	w.t.Cleanup(func() { conn.Close() })
	must.Do(w.t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

// attach opens a terminal.
func (w *world) attach(ref string, o localclient.AttachOptions) *localclient.Attachment {
	w.t.Helper()
	a := must.Get(w.client.Attach(w.t.Context(), ref, o))(w.t)
	w.t.Cleanup(a.Close)
	return a
}

// reads collects data until it is text, and returns the controls met on the way.
func reads(t *testing.T, a *localclient.Attachment, text string) (controls []localapi.Control) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := ""
	for got != text {
		m, err := a.Next(ctx)
		if err != nil {
			t.Fatalf("read %q of %q: %v", got, text, err)
		}
		if m.Control != nil {
			controls = append(controls, *m.Control)
		}
		got += string(m.Data)
	}
	return controls
}

// next waits for a control and drops data before it.
func next(t *testing.T, a *localclient.Attachment) localapi.Control {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		m := must.Get(a.Next(ctx))(t)
		if m.Control != nil {
			return *m.Control
		}
	}
}

// rooted makes absolute, on this system, the directories that are told as "cwd":"/…", and
// fills in args if there are any.
func rooted(text string, args ...any) string {
	root := strings.TrimSuffix(strconv.Quote(testkit.Abs("/")), `"`)
	text = strings.ReplaceAll(text, `"cwd":"/`, `"cwd":`+root)
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

func (d *fakeDaemon) CheckAudience(_ context.Context, host string, names []string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.checked == nil {
		d.checked = map[string][]string{}
	}
	d.checked[host] = names
	return d.refuses
}

func (d *fakeDaemon) TakesTerminal(context.Context, string, term.Handle) error { return d.takes }

func (d *fakeDaemon) TakesPorts(string) error { return d.noPorts }

func (d *fakeDaemon) TakesShares(string) error { return d.refuses }

func (d *fakeDaemon) ShareTold(context.Context, string, term.Handle, string) (string, error) {
	return "http://127.0.0.1:8090/s/#", d.refuses
}

func (d *fakeDaemon) AudienceTold(context.Context, string, term.Handle) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told++
	return true
}
