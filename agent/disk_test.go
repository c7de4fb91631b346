package agent_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/localapi"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
)

// troubled is a daemon on a small disk, with a terminal that ticks at a host.
type troubled struct {
	*daemon
	t     *testing.T
	where dirs.Dirs
	disk  string
	url   string
	proxy *testkit.Proxy
	ticks string // the name of the terminal
}

// ticking starts the terminal that ticks. It has a unique name, since the host may still
// show that of an earlier daemon.
func (d *troubled) ticking(name string) {
	d.t.Helper()
	d.ticks = name
	tick := []string{"sh", "-c", "n=0; while sleep 0.02; do n=$((n+1)); echo $n; done"}
	must.Get(d.client.Spawn(d.t.Context(), localapi.SpawnRequest{Command: tick, Env: os.Environ(), Cwd: "/", Name: name}))(d.t)
}

// ticked is how often the terminal has ticked as the host knows it.
func (d *troubled) ticked() int {
	c := must.Get(client.Connect(d.t.Context(), client.Endpoint{URL: d.url}, client.Options{ClientID: "looker", Subscriptions: []string{ahp.RootURI}}))(d.t)
	defer c.Close()
	var root ahp.RootState
	must.Do(d.t, json.Unmarshal(c.Result().Snapshots[0].State, &root))
	for _, i := range root.Terminals {
		var s ahp.TerminalState
		r, err := c.Subscribe(d.t.Context(), i.Resource)
		if err != nil || i.Title != d.ticks || i.Lifecycle.Exited() || json.Unmarshal(r.Snapshot.State, &s) != nil {
			continue
		}
		lines := strings.Fields(s.Text())
		if len(lines) == 0 {
			return 0
		}
		n, err := strconv.Atoi(lines[len(lines)-1])
		if err != nil {
			d.t.Errorf("the host shows %q", s.Text())
		}
		return n
	}
	return 0
}

// goesOn checks that the terminal's output continues to be seen, that another one can be
// started, and whether status reports a fault with cause.
func (d *troubled) goesOn(when, cause string) {
	d.t.Helper()
	before := d.ticked()
	d.proxy.Cut() // which is worth a line in the log
	testkit.Eventually(d.t, patience, when+": the terminal ticks at the host", func() bool { return d.ticked() > before+3 })
	tm, err := d.client.Spawn(d.t.Context(), localapi.SpawnRequest{Command: []string{"sh", "-i"}, Env: os.Environ(), Cwd: "/"})
	if err == nil {
		_, err = d.client.Kill(d.t.Context(), tm.ID)
	}
	if err != nil {
		d.t.Errorf("%s: starting and killing a shell: %v", when, err)
	}
	d.status(when+": status tells of "+cause, func(s localapi.Status) bool {
		for _, one := range s.Degraded {
			if one.Cause == cause && cause != "" {
				return true
			}
		}
		return cause == "" && len(s.Degraded) == 0
	})
}

// fill leaves no room on the disk.
func (d *troubled) fill() (filler string) {
	filler = filepath.Join(d.disk, "filler")
	_ = os.WriteFile(filler, make([]byte, 2<<20), 0o600) // as far as it goes
	f := must.Get(os.OpenFile(agent.LogPath(d.where), os.O_APPEND|os.O_WRONLY, 0))(d.t)
	defer f.Close()
	_, _ = f.Write([]byte(strings.Repeat("filler\n", 1<<10))) // the rest of its last block
	return filler
}

// pairs tries to pair with another host, and wants the reason why that cannot be kept, or
// "".
func (d *troubled) pairs(name, want string) {
	d.t.Helper()
	_, err := d.client.Pair(d.t.Context(), localapi.PairRequest{URL: startHost(d.t, ""), Name: name})
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		d.t.Errorf("pairing with %s: %v, want %q", name, err, want)
	}
}

// A disk that is full or not writable stops no terminal, and status reports it.
func TestTerminalsGoOnWithoutADisk(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	disk, there := testkit.OnSmallDisk(t)
	if !there {
		return
	}
	h := host.New(host.Options{})
	t.Cleanup(h.Close)
	url := serveHTTP(t, h)
	d := &troubled{t: t, disk: disk, url: url}
	d.proxy = testkit.NewProxy(t, func() (net.Conn, error) { return net.Dial("tcp", strings.TrimPrefix(url, "ws://")) }, nil)
	where := home(t)
	where.State = filepath.Join(disk, "state")
	d.where = where
	d.daemon = start(t, withHolders(t, where))
	must.Get(d.client.Pair(t.Context(), localapi.PairRequest{URL: "ws://" + d.proxy.Listen(t), Name: "lab", Default: true}))(t)
	d.ticking("ticks")
	d.goesOn("at first", "")

	filler := d.fill()
	d.goesOn("with a full disk", "log")
	d.pairs("other", "no space left")
	must.Do(t, os.Remove(filler))
	d.pairs("other", "")
	d.goesOn("with room again", "")

	d.end()
	testReadOnly(t, d, where)
}

// testReadOnly starts daemons that cannot write their state from the start.
func testReadOnly(t *testing.T, d *troubled, where dirs.Dirs) {
	testkit.Remount(t, d.disk, "ro")
	d.daemon = start(t, withHolders(t, where))
	s := d.status("status tells of the log", func(s localapi.Status) bool { return len(s.Degraded) > 0 && s.Degraded[0].Cause == "log" })
	if len(s.Hosts) != 2 {
		t.Errorf("it knows %+v, want the two hosts of before", s.Hosts)
	}
	d.ticking("ticks again")
	d.goesOn("with a disk that cannot be written", "log")
	d.pairs("third", "read-only")
	d.stop()
	where.State = filepath.Join(d.disk, "none")
	c := withHolders(t, where)
	d.daemon = start(t, c)
	d.status("status tells of the directory", func(s localapi.Status) bool {
		return len(s.Degraded) > 0 && strings.Contains(s.Degraded[0].Text, "read-only")
	})
	kept := must.Get(d.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"cat"}, Env: os.Environ(), Cwd: "/"}))(t)
	d.end()
	d.daemon = start(t, c)
	if now := d.list(1).Terminals[0]; now.Pid != kept.Pid || now.Exit != nil {
		t.Errorf("the next daemon has %+v, want process %d", now, kept.Pid)
	}
	d.stop()
	testkit.Remount(t, d.disk, "rw")
	must.Do(t, os.Mkdir(where.State, 0o777))
	must.Do(t, os.Chmod(where.State, 0o777))
	a, err := agent.New(agent.Config{Dirs: where, AllowRoot: true})
	if err == nil {
		err = a.Run(t.Context())
	}
	var running *agent.RunningError
	if err == nil || errors.As(err, &running) || !strings.Contains(err.Error(), "open to other users") {
		t.Errorf("a directory that is open to others: %v; want it refused", err)
	}
}

// A shell whose scripts cannot be written starts without them.
func TestShellsStartWithoutTheirScripts(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	where := home(t)
	d := start(t, agent.Config{Dirs: where})
	scripts := filepath.Join(where.Runtime, "sh")
	if err := os.WriteFile(scripts, nil, 0o600); err != nil { // in the way of the folder
		t.Fatal(err)
	}
	shell := func() {
		t.Helper()
		r := localapi.SpawnRequest{Command: []string{"bash"}, Env: os.Environ(), Cwd: "/", Shell: true}
		must.Get(d.client.Spawn(t.Context(), r))(t)
	}
	shell()
	s := d.status("status tells of the scripts", func(s localapi.Status) bool { return len(s.Degraded) == 1 })
	if s.Degraded[0].Cause != "shell integration" || !strings.Contains(s.Degraded[0].Text, scripts) {
		t.Errorf("status says %+v", s.Degraded)
	}
	must.Do(t, os.Remove(scripts))
	shell()
	d.status("all is well again", func(s localapi.Status) bool { return len(s.Degraded) == 0 })
}
