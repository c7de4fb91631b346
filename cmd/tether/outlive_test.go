package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/holder"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/jsonspan"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// mortal is a daemon process in a separate home, to be killed and started again, paired
// with a host at which somebody watches.
type mortal struct {
	t      *testing.T
	home   string
	socket string
	door   *localclient.Client
	host   *host.Host
	serves atomic.Pointer[host.Host] // host, for its server
	proxy  *testkit.Proxy            // between the daemon and the host
	away   atomic.Bool               // the proxy lets nobody through
	daemon *exec.Cmd
	said   testkit.Output // on standard error
}

// mortalLog is how many bytes of envelopes the host of a mortal remembers of each
// terminal.
const mortalLog = 64 << 20

func newMortal(t *testing.T) *mortal {
	t.Helper()
	m := &mortal{t: t}
	t.Cleanup(func() { // after that of the home, which ends it
		if m.daemon != nil {
			m.daemon.Wait()
		}
		if said := m.said.String(); strings.Contains(said, "DATA RACE") {
			t.Errorf("a daemon said:\n%s", said)
		}
	})
	m.home = newHome(t)
	configure(t, "terminals.stall_time", "10m") // a slow machine must not make a flood go on without its observer
	t.Setenv(awayVar, patience.String())        // nor keep a person from the next daemon
	m.socket = agent.SocketPath(dirsOf(m.home))
	m.door = localclient.New(m.socket).With((&app{stderr: os.Stderr}).token())
	// The observer must never lag behind the host's memory: all of it is compared.
	m.host = host.New(host.Options{Grace: time.Hour, LogBytes: mortalLog, LogCount: 1 << 20, Scrollback: 512 << 10})
	m.serves.Store(m.host)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serves.Load().ServeHTTP(w, r) }))
	m.proxy = testkit.NewProxy(t, func() (net.Conn, error) {
		if m.away.Load() {
			return nil, net.ErrClosed
		}
		return net.Dial("tcp", server.Listener.Addr().String())
	}, func(int) testkit.Fault { return testkit.Fault{} })
	t.Cleanup(func() {
		m.door.Close()
		m.proxy.Close()
		m.host.Close()
		server.Close()
	})
	m.start("daemon")
	must.Get(m.door.Pair(t.Context(), localapi.PairRequest{Name: "lab", URL: "ws://" + m.proxy.Listen(t)}))(t)
	return m
}

// start starts a daemon and waits until it answers and has taken up all terminals: on a
// slow machine it answers before.
func (m *mortal) start(args ...string) {
	m.t.Helper()
	before := m.daemon
	m.daemon = exec.Command("tether", args...)
	m.daemon.Stderr = &m.said
	must.Do(m.t, m.daemon.Start())
	m.await("a daemon answers", func(s localapi.Status) bool { return s.Pid == m.daemon.Process.Pid })
	if before != nil {
		before.Wait()
	}
	testkit.Eventually(m.t, patience, "all terminals are taken up", func() bool {
		return !slices.ContainsFunc(m.holders(), func(id string) bool {
			_, err := m.door.Find(m.t.Context(), id)
			return err != nil
		})
	})
}

func (m *mortal) holdersDir() string { return filepath.Join(m.home, "run", "h") }

// holders are the ids of the living ones.
func (m *mortal) holders() []string {
	m.t.Helper()
	return must.Get(holder.List(m.holdersDir()))(m.t)
}

// kill is kill -9.
func (m *mortal) kill() {
	m.t.Helper()
	must.Do(m.t, m.daemon.Process.Kill())
	ended := m.daemon.Wait()
	status := m.daemon.ProcessState.ExitCode() // -1 for a signal; a process killed on Windows has 1
	if ended == nil || status > 1 {
		m.t.Fatalf("before it could be killed the daemon had ended: %v\n%s", m.daemon.ProcessState, m.said.String())
	}
}

// await waits until the daemon's status is as cond wants it.
func (m *mortal) await(what string, cond func(localapi.Status) bool) {
	m.t.Helper()
	var last localapi.Status
	testkit.Eventually(m.t, patience, what, func() bool {
		var err error
		last, err = m.door.Status(m.t.Context())
		return err == nil && cond(last)
	})
}

// spawn starts a terminal that is lent to the host.
func (m *mortal) spawn(r localapi.SpawnRequest) localapi.Terminal {
	m.t.Helper()
	r.Cwd, r.Env = testkit.Abs("/"), os.Environ()
	return must.Get(m.door.Spawn(m.t.Context(), r))(m.t)
}

// find returns the terminal as the daemon knows it.
func (m *mortal) find(id string) localapi.Terminal {
	m.t.Helper()
	return must.Get(m.door.Find(m.t.Context(), id))(m.t)
}

// uri waits until the terminal is at the host.
func (m *mortal) uri(id string) (uri string) {
	m.t.Helper()
	m.await("the terminal is at the host", func(s localapi.Status) bool {
		for _, l := range s.Hosts[0].Lent {
			if l.ID == id && l.Problem == "" {
				uri = l.URI
			}
		}
		return uri != "" && slices.Contains(m.listed(), uri)
	})
	return uri
}

// listed are the terminals at the host.
func (m *mortal) listed() (uris []string) {
	m.t.Helper()
	near, far := testkit.Channels()
	go m.host.ServeChannel(m.t.Context(), far)
	c := must.Get(client.ConnectChannel(m.t.Context(), near, client.Options{ClientID: "looker", Subscriptions: []string{ahp.RootURI}}))(m.t)
	defer c.Close()
	var root ahp.RootState
	must.Do(m.t, json.Unmarshal(c.Result().Snapshots[0].State, &root))
	for _, info := range root.Terminals {
		uris = append(uris, info.Resource)
	}
	return uris
}

// watcher watches one terminal at the host and compares its output with the flood.
type watcher struct {
	mu    sync.Mutex
	seen  testkit.FloodCheck
	text  strings.Builder // if all is kept
	keep  bool
	wrong error
	exits []int64
}

// watch begins with the output that is at the host already.
func (m *mortal) watch(uri string, keep bool) *watcher {
	m.t.Helper()
	w := &watcher{keep: keep}
	near, far := testkit.Channels()
	go m.host.ServeChannel(context.Background(), far)
	c := must.Get(client.ConnectChannel(m.t.Context(), near, client.Options{ClientID: "watcher", OnEnvelope: func(v ahp.EnvelopeView) {
		if v.Channel == uri && !v.Rejected {
			w.see(v)
		}
	}}))(m.t)
	m.t.Cleanup(c.Close)
	w.mu.Lock()
	defer w.mu.Unlock()
	r := must.Get(c.Subscribe(m.t.Context(), uri))(m.t)
	var state ahp.TerminalState
	must.Do(m.t, json.Unmarshal(r.Snapshot.State, &state))
	for _, part := range state.Content {
		w.takeLocked([]byte(part.Value))
	}
	return w
}

func (w *watcher) see(v ahp.EnvelopeView) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch v.Kind {
	case ahp.ActionTerminalData:
		text, err := jsonspan.AppendUnquote(nil, v.Data)
		w.wrong = errors.Join(w.wrong, err)
		w.takeLocked(text)
	case ahp.ActionTerminalExited:
		a, _ := ahp.DecodeAction(v.Action)
		code := int64(-99) // none was given
		if c := a.(ahp.TerminalExited).ExitCode; c != nil {
			code = *c
		}
		w.exits = append(w.exits, code)
	}
}

func (w *watcher) takeLocked(text []byte) {
	if w.keep {
		w.text.Write(text)
		return
	}
	if w.wrong == nil {
		_, w.wrong = w.seen.Write(text)
	}
}

func (w *watcher) state() (offset int64, exits []int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Offset(), slices.Clone(w.exits), w.wrong
}

// ended returns an error if the flood ended after n bytes in the wrong place.
func (w *watcher) ended(n int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Ended(n)
}

func (w *watcher) shown() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// alive reports whether the process runs.
func alive(pid int) bool {
	p, err := proc.Lookup(pid)
	return err == nil && !p.Zombie
}

// The promise: the daemon is killed again and again in the middle of a flood, and a
// watcher at the host sees every byte once and in order, and the exit at the end. The
// child never notices.
func TestKilledUnderFlood(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	flood := m.spawn(localapi.SpawnRequest{Command: testkit.FloodCommand(t, 0, 0), OnSlow: "hold"})
	uri := m.uri(flood.ID)
	w := m.watch(uri, false)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for round := range testkit.Rounds(t, 4, 200) {
		if round%3 > 0 { // else at once: while it takes the terminals up, or connects
			before, _, _ := w.state()
			more := int64(random.IntN(64 << 10))
			testkit.Eventually(t, patience, "the observer sees more", func() bool {
				now, _, err := w.state()
				return err != nil || now > before+more
			})
		}
		if _, exits, err := w.state(); err != nil || len(exits) > 0 {
			t.Fatalf("round %d: exits %v, %v", round, exits, err)
		}
		m.kill()
		if !alive(flood.Pid) {
			t.Fatalf("round %d: the child is gone", round)
		}
		m.start("daemon")
		if now := m.find(flood.ID); now.Pid != flood.Pid || now.Lost != 0 || now.Name != flood.Name || !now.Outlives {
			t.Fatalf("round %d: the terminal is %+v, was %+v", round, now, flood)
		}
	}
	if now := m.uri(flood.ID); now != uri {
		t.Errorf("at the host it is %s, was %s", now, uri)
	}
	m.endFlood(flood, w)
}

// endFlood kills the flood and compares the observer's output with the written one.
func (m *mortal) endFlood(flood localapi.Terminal, w *watcher) {
	t := m.t
	t.Helper()
	must.Get(m.door.Kill(t.Context(), flood.ID))(t)
	end := m.find(flood.ID)
	testkit.Eventually(t, patience, "the observer sees the exit", func() bool { _, exits, err := w.state(); return err != nil || len(exits) > 0 })
	got, exits, err := w.state()
	if err == nil {
		err = w.ended(end.Bytes)
	}
	if err != nil || len(exits) != 1 || exits[0] != int64(end.Exit.Code) || end.Lost != 0 {
		t.Errorf("%d bytes seen of %d and %d lost, exits %v, want one of %+v; %v", got, end.Bytes, end.Lost, exits, end.Exit, err)
	}
	t.Logf("%d bytes", got)
}
