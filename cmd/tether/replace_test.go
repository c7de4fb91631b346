package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/asciicast"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/pty"
	"tether/platform/sandbox"
)

// An upgrade in place under a flood: an observer misses nothing, and no command meets a
// closed door.
func TestReplacedUnderFlood(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	flood := m.spawn(localapi.SpawnRequest{Command: testkit.FloodCommand(t, 0, 0), OnSlow: "hold"})
	w := m.watch(m.uri(flood.ID), false)
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asked := 0
	asking.Go(func() {
		for ; ctx.Err() == nil; asked++ {
			c := localclient.New(m.socket)
			if _, err := c.Find(ctx, flood.ID); err != nil && !m.stillTakesUp(ctx, c, err) && ctx.Err() == nil {
				t.Errorf("request %d: %v", asked, err)
			}
			c.Close()
		}
	})
	for range testkit.Rounds(t, 2, 100) {
		old := m.daemon
		m.start("daemon", "--replace")
		if !old.ProcessState.Success() {
			t.Errorf("the daemon that made way: %v", old.ProcessState)
		}
		before, _, _ := w.state()
		testkit.Eventually(t, patience, "the observer sees more", func() bool { now, _, err := w.state(); return err != nil || now > before })
	}
	stop()
	asking.Wait()
	m.endFlood(flood, w)
	t.Logf("%d requests", asked)
}

// stillTakesUp says whether a daemon that does not know a terminal may not have it yet:
// it answers after a while, on a machine that is too slow.
func (m *mortal) stillTakesUp(ctx context.Context, c *localclient.Client, err error) bool {
	const within = 3 * time.Second // that long nobody is answered, unless all are taken up
	var unknown *localapi.Error
	if !errors.As(err, &unknown) || unknown.Code != localapi.CodeNoTerminal {
		return false
	}
	s, err := c.Status(ctx)
	return err == nil && time.Since(s.Started) > within
}

// A script at a terminal reads every byte once and gets the exit status, however often
// the daemon is killed meanwhile.
func TestScriptOutlivesDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	flood := testkit.FloodCommand(t, 0, 0)
	c := exec.Command("tether", append([]string{"run", "--private", "--name", "script", "--"}, flood...)...)
	in, err := c.StdinPipe() // its end would be typed
	must.Do(t, err)
	defer in.Close()
	var seen progress
	var said bytes.Buffer
	c.Stdout, c.Stderr = &seen, &said
	must.Do(t, c.Start())
	for range testkit.Rounds(t, 2, 50) {
		before, _ := seen.state()
		testkit.Eventually(t, patience, "more is printed", func() bool { now, err := seen.state(); return now > before || err != nil })
		m.kill()
		m.start("daemon")
	}
	x := must.Get(m.door.Kill(t.Context(), "script"))(t)
	err = c.Wait()
	if got, wrong := seen.state(); c.ProcessState.ExitCode() != x.Exit.Code || wrong != nil || got != x.Bytes {
		t.Errorf("%v of %+v, %d of %d bytes, %v\n%s", err, x.Exit, got, x.Bytes, wrong, said.String())
	}
	t.Logf("%d bytes", x.Bytes)
	if !strings.Contains(said.String(), "the terminal kept running") {
		t.Errorf("the person was told %q", said.String())
	}
}

// progress compares the lines that a script reads with the flood.
type progress struct {
	mu    sync.Mutex
	check testkit.FloodCheck
	wrong error
}

func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong == nil {
		_, p.wrong = p.check.Write(b)
	}
	return len(b), nil
}

func (p *progress) state() (offset int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check.Offset(), p.wrong
}

// A person goes on typing at the same terminal, whose size they may have changed
// meanwhile.
func TestPersonOutlivesDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	p := sit(t, "run", "--private", "--", "sh", "-c", `stty -echo; while read x; do echo "<$x>" $(stty size); done`)
	p.types("one\r")
	p.sees("<one> 30 100")
	m.kill()
	p.types("two\r") // while there is no daemon
	must.Do(t, p.pty.Resize(pty.Size{Cols: 90, Rows: 20}))
	m.start("daemon")
	p.sees("tether: reconnected after", "the terminal kept running", "<two>")
	p.types("three\r")
	p.sees("<three> 20 90")
	m.start("daemon", "--replace")
	p.types("four\r")
	p.sees("<four>")
	if n := strings.Count(p.shown(), "<"); n != 0 {
		t.Errorf("something was repeated: %q", p.shown())
	}
	p.types("\x04")
	p.exits(0)
}

// If nobody starts another daemon, the person is told, and their terminals continue.
func TestPersonIsToldThatNoDaemonCame(t *testing.T) {
	m := newMortal(t)
	t.Setenv(awayVar, "1s") // so long for a person
	p := sit(t, "run", "--private", "--name", "left", "--", "does", "print:ready", "after:1h")
	p.sees("ready")
	m.kill()
	p.sees("no daemon has started within 1s", "tether daemon --background; tether attach pty-")
	p.exits(254)
	if out, status := command(t, "status"); status != 3 || !strings.Contains(out, "1 terminal is running without a daemon") {
		t.Errorf("status %d: %s", status, out)
	}
	m.start("daemon")
	if out, _ := command(t, "ls"); !strings.Contains(out, "left") || !strings.Contains(out, "running") {
		t.Errorf("listed:\n%s", out)
	}
}

// A script that is interrupted while it waits for the next daemon ends when nobody comes.
func TestInterruptWhileTheDaemonIsDown(t *testing.T) {
	testkit.Unix(t, "there is no signal to send")
	m := newMortal(t)
	t.Setenv(awayVar, "1s")
	c := exec.Command("tether", "run", "--private", "--name", "left", "--", "does", "print:ready", "after:1h")
	in := must.Get(c.StdinPipe())(t) // its end would be typed
	defer in.Close()
	var seen testkit.Output
	c.Stdout = &seen
	must.Do(t, c.Start())
	testkit.Eventually(t, patience, "it is attached", func() bool { return strings.Contains(seen.String(), "ready") })
	m.kill()
	must.Do(t, c.Process.Signal(os.Interrupt))
	hangs := time.AfterFunc(patience, func() { c.Process.Kill() })
	defer hangs.Stop()
	if err := c.Wait(); c.ProcessState.ExitCode() != localapi.ExitDropped {
		t.Errorf("%v, want status %d", err, localapi.ExitDropped)
	}
	m.start("daemon")
}

// A terminal that is no longer lent when the daemon returns is reported.
func TestLendingThatEndsWhileTheDaemonIsDown(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	p := sit(t, "run", "--name", "web", "--", "sh", "-c", "echo ready; read x; exit 3")
	p.sees("is visible to lab (0 watching)", "ready")
	before, err := m.door.Lend(t.Context(), "web", localapi.LendRequest{ForMs: 500})
	if err != nil || len(before.Loans) != 1 || before.Loans[0].Until == nil {
		t.Fatalf("%+v, %v", before.Loans, err)
	}
	m.kill()
	testkit.Eventually(t, patience, "its time is up", func() bool { return time.Now().After(*before.Loans[0].Until) })
	m.start("daemon")
	p.sees("web is no longer shared")
	testkit.Eventually(t, patience, "the host does not show it any more, long before the grace time ends", func() bool { return len(m.listed()) == 0 })
	p.types("x\r")
	p.exits(3)
}

// A host that is away when a lending ends hears of it from the daemon that reaches it
// first.
func TestUnlendWhileTheHostIsAway(t *testing.T) {
	m := newMortal(t)
	x := m.spawn(localapi.SpawnRequest{Command: []string{"does", "after:1h"}})
	y := m.spawn(localapi.SpawnRequest{Command: []string{"does", "after:1h"}})
	m.uri(x.ID)
	kept := m.uri(y.ID)
	m.away.Store(true)
	m.proxy.Cut()
	m.await("the link is down", func(s localapi.Status) bool { return s.Hosts[0].State != "online" })
	must.Get(m.door.Unlend(t.Context(), x.ID, ""))(t)
	for range 2 { // the first of them reaches no host
		m.kill()
		m.start("daemon")
	}
	m.away.Store(false)
	testkit.Eventually(t, patience, "the host shows only what is lent", func() bool { return slices.Equal(m.listed(), []string{kept}) })
}

// paint are the sequences with which a console of Windows shows text.
var paint = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]|\x1b\\][^\a\x1b]*(\a|\x1b\\\\)|\r")

// unpainted is text without them, with the line ends of files.
func unpainted(text string) string { return paint.ReplaceAllString(text, "") }

// An exit while there was no daemon is reported once, after the last byte, with the code.
func TestExitWhileTheDaemonIsDown(t *testing.T) {
	m := newMortal(t)
	flag := filepath.Join(t.TempDir(), "go")
	x := m.spawn(localapi.SpawnRequest{Command: []string{"does", "print:one", "file:" + flag, "print:two", "exit:9"}})
	w := m.watch(m.uri(x.ID), true)
	testkit.Eventually(t, patience, "the first line is at the host", func() bool { return strings.Contains(w.shown(), "one") })
	m.kill()
	must.Do(t, os.WriteFile(flag, nil, 0o600))
	testkit.Eventually(t, patience, "its holder knows of the child's end", func() bool {
		running := must.Get(agent.LeftRunning(dirsOf(m.home)))(t)
		return !slices.Contains(running, x.ID)
	})
	down := time.Now()
	m.start("daemon")
	testkit.Eventually(t, patience, "the exit is at the host", func() bool { _, exits, _ := w.state(); return len(exits) > 0 })
	now := m.find(x.ID)
	_, exits, err := w.state()
	if text := w.shown(); unpainted(text) != "one\ntwo\n" || !slices.Equal(exits, []int64{9}) || err != nil {
		t.Errorf("the host was told %q, exits %v, %v", text, exits, err)
	}
	if now.Exit == nil || now.Exit.Code != 9 || now.Exit.At.After(down) {
		t.Errorf("here it is %+v, down since %v", now.Exit, down)
	}
	listed := m.listed()
	m.kill()
	m.start("daemon")
	if again := m.find(x.ID); again.Exit == nil || *again.Exit != *now.Exit || !slices.Equal(m.listed(), listed) {
		t.Errorf("after the next kill: %+v, want %+v", again.Exit, now.Exit)
	}
	m.await("the link is up", func(s localapi.Status) bool { return s.Hosts[0].State == "online" && len(s.Hosts[0].Lent) == 0 })
	if _, exits, err := w.state(); len(exits) != 1 || err != nil {
		t.Errorf("then the host was told of the exits %v, %v", exits, err)
	}
}

// An exited terminal can be read, waited for and seen at the host after the daemon was
// killed or replaced, and ends with tether stop.
func TestExitedOutlivesDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash: ", err)
	}
	m := newMortal(t)
	t.Setenv("HOME", t.TempDir())
	ran := exec.Command("tether", "run", "--name", "ran", "--", "sh", "-c", "echo some output; exit 3")
	if out, err := ran.CombinedOutput(); ran.ProcessState.ExitCode() != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	killed := m.spawn(localapi.SpawnRequest{Command: []string{"sleep", "1000"}, Name: "killed", Private: true})
	must.Get(m.door.Kill(t.Context(), killed.ID))(t)
	shell := m.spawn(localapi.SpawnRequest{Shell: true, Command: []string{bash}, Name: "shell"})
	hand := must.Get(m.door.Attach(t.Context(), shell.ID, localclient.AttachOptions{}))(t)
	must.Do(t, hand.Write(t.Context(), []byte("(exit 4)\recho by hand; exit 5\r")))
	m.await("the shell has ended", func(localapi.Status) bool { return m.find(shell.ID).Exit != nil })
	hand.Close()
	var uris []string // those of lent terminals
	testkit.Eventually(t, patience, "both are at the host", func() bool { uris = m.listed(); return len(uris) == 2 })
	m.await("the host knows of their ends", func(s localapi.Status) bool { return len(s.Hosts[0].Lent) == 0 })
	commands, err := m.door.Commands(t.Context(), shell.ID)
	if err != nil || len(commands.Commands) != 2 {
		t.Fatalf("commands %+v, %v", commands, err)
	}
	before := []localapi.Terminal{m.find("ran"), m.find(killed.ID), m.find(shell.ID)}
	for _, end := range []func(){func() { m.kill(); m.start("daemon") }, func() { m.start("daemon", "--replace") }} {
		end()
		for _, want := range before {
			got := m.find(want.ID)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(localapi.Loan{}, "State", "Observers", "Watchers"), cmpopts.IgnoreFields(localapi.Terminal{}, "Input", "InputSince")); diff != "" { // which follow from the link
				t.Errorf("%s is another (-want +got):\n%s", want.Name, diff)
			}
		}
		if out, err := exec.Command("tether", "read", "ran").CombinedOutput(); err != nil || !strings.Contains(string(out), "some output") {
			t.Errorf("read: %v: %s", err, out)
		}
		wait := exec.Command("tether", "wait", "ran", "--exit")
		if out, _ := wait.CombinedOutput(); wait.ProcessState.ExitCode() != 3 {
			t.Errorf("wait: %v: %s", wait.ProcessState, out)
		}
		again, err := m.door.Commands(t.Context(), shell.ID)
		if diff := cmp.Diff(commands, again, cmpopts.EquateApproxTime(time.Millisecond), cmpopts.EquateApprox(0, 1)); diff != "" || err != nil {
			t.Errorf("commands %v (-want +got):\n%s", err, diff)
		}
		for _, uri := range uris {
			testkit.Eventually(t, patience, "it is at the host still", func() bool { return slices.Contains(m.listed(), uri) })
			if w := m.watch(uri, true); len(w.exits) > 0 {
				t.Errorf("%s exits again", uri)
			}
		}
	}
	if out, err := exec.Command("tether", "stop").CombinedOutput(); err != nil || len(m.holders()) > 0 || strings.Contains(string(out), "ended") {
		t.Errorf("tether stop leaves %v, %v: %s", m.holders(), err, out)
	}
}

// A holder is kept until the host has heard of the exit, over kills of the daemon.
func TestExitIsKeptForAHostThatIsAway(t *testing.T) {
	m := newMortal(t)
	x := m.spawn(localapi.SpawnRequest{Command: []string{"does", "print:ready", "read", "exit:5"}})
	w := m.watch(m.uri(x.ID), true)
	m.away.Store(true)
	m.proxy.Cut()
	m.await("the link is down", func(s localapi.Status) bool { return s.Hosts[0].State != "online" })
	a := must.Get(m.door.Attach(t.Context(), x.ID, localclient.AttachOptions{}))(t)
	must.Do(t, a.Write(t.Context(), []byte("\r")))
	m.await("it has exited", func(localapi.Status) bool { return m.find(x.ID).Exit != nil })
	a.Close()
	for range 2 {
		m.kill()
		m.start("daemon")
		m.await("it is known to have exited", func(localapi.Status) bool { return m.find(x.ID).Exit != nil }) // after its output was read
		if now := m.find(x.ID); now.Exit.Code != 5 {
			t.Fatalf("exit %+v", now.Exit)
		}
	}
	m.away.Store(false)
	testkit.Eventually(t, patience, "the exit is at the host", func() bool { _, exits, _ := w.state(); return len(exits) > 0 })
	if _, exits, _ := w.state(); !slices.Equal(exits, []int64{5}) {
		t.Errorf("exits %v", exits)
	}
}

// Everything that a list shows of a terminal is the same after a kill: its owner, its
// name, its loans, its commands.
func TestNothingIsForgotten(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash: ", err)
	}
	m := newMortal(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PS1", "$ ")
	t.Setenv("SHELL", bash)
	titled := m.spawn(localapi.SpawnRequest{Command: []string{"sh", "-c", `printf '\033]2;a title\007'; exec sleep 1000`}, Name: "titled", Cols: 101, Rows: 33})
	m.spawn(localapi.SpawnRequest{Command: []string{"sleep", "1000"}, Name: "mine", Private: true})
	a := must.Get(m.door.As("robot").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"/bin/sleep", "1000"}, Name: "its", Cwd: t.TempDir(), Env: []string{"A=b"}}))(t)
	shell := m.spawn(localapi.SpawnRequest{Shell: true, Command: []string{bash}, Name: "shell"})
	hand := must.Get(m.door.Attach(t.Context(), shell.ID, localclient.AttachOptions{}))(t)
	for n, line := range []string{"true", "(exit 3)", "sleep 0.3", "cd /tmp", "sleep 1000"} {
		m.await("a prompt", func(localapi.Status) bool {
			l, err := m.door.Commands(t.Context(), shell.ID)
			return err == nil && l.CommandDetection && len(l.Commands) == n && (n == 0 || !l.Commands[n-1].Running)
		})
		must.Do(t, hand.Write(t.Context(), []byte(line+"\r")))
	}
	m.await("the last command runs", func(localapi.Status) bool { return m.find(shell.ID).Running == "sleep 1000" })
	hand.Close()
	// A command's beginning is kept a little later, or together with state that is kept
	// at once, such as loans.
	must.Get(m.door.Unlend(t.Context(), shell.ID, ""))(t)
	must.Get(m.door.Lend(t.Context(), shell.ID, localapi.LendRequest{}))(t)
	m.await("all are lent", func(s localapi.Status) bool { return len(s.Hosts[0].Lent) == 3 && m.find(shell.ID).Attached == 0 })
	m.await("the title is read", func(localapi.Status) bool { return m.find(titled.ID).Title == "a title" })
	before, commands := m.all(shell.ID)
	for range 2 {
		m.kill()
		m.start("daemon")
		after, again := m.all(shell.ID)
		// Whether the host has them already, and how many watch there, depends on the
		// link.
		if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(localapi.Loan{}, "Observers", "State", "Watchers"), cmpopts.IgnoreFields(localapi.Terminal{}, "Input", "InputSince")); diff != "" {
			t.Errorf("terminals (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(commands, again, cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
			t.Errorf("commands (-before +after):\n%s", diff)
		}
	}
	if seen, err := m.door.As("robot").List(t.Context()); err != nil || !slices.ContainsFunc(seen.Terminals, func(x localapi.Terminal) bool { return x.ID == a.ID }) {
		t.Errorf("the agent sees %v, %v", seen.Terminals, err)
	}
}

// all returns the terminals, and the commands of one.
func (m *mortal) all(shell string) (localapi.TerminalList, localapi.CommandList) {
	m.t.Helper()
	all := must.Get(m.door.List(m.t.Context()))(m.t)
	commands := must.Get(m.door.Commands(m.t.Context(), shell))(m.t)
	return all, commands
}

// The terminals of an agent behind a wall continue when the daemon is replaced, or
// killed: they are still confined, and programs that it starts later have the same
// private directory and use tether as that agent.
func TestConfinedAgentOutlivesDaemons(t *testing.T) {
	self, err := os.Executable()
	if err != nil || sandbox.Works(sandbox.Wall, self) != nil {
		t.Skip("namespaces do not work here")
	}
	m := newMortal(t)
	work, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	config := fmt.Sprintf("[policy.builtin]\ntether = \"allow\"\nenvironment = \"allow\"\n[[policy.principals]]\nname = \"agent:boxed\"\nsandbox = \"wall\"\nroots = [%q]\n", work)
	for path, text := range map[string]string{outside: "the person's", filepath.Join(m.home, "config", "config.toml"): config} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	m.start("daemon", "--replace")
	start := func(line string) localapi.Terminal {
		t.Helper()
		return must.Get(m.door.As("boxed").Spawn(t.Context(), localapi.SpawnRequest{Line: line, Cwd: work, Env: os.Environ()}))(t)
	}
	prints := func(id, want string) {
		t.Helper()
		var text []byte
		testkit.Eventually(t, patience, "a confined terminal prints "+want, func() bool {
			out, err := m.door.Read(t.Context(), id, localclient.ReadOptions{}, nil)
			if err != nil {
				return false
			}
			defer out.Close()
			text, err = io.ReadAll(out)
			return err == nil && strings.Contains(string(text), want)
		})
		if strings.Contains(string(text), "the person's") {
			t.Errorf("it has read a file of the person's: %s", text)
		}
	}
	x := start(`echo "of the first" >/tmp/mark; n=0; until test -e end$n; do test -e go$n && { cat ` + outside +
		`; cat /tmp/mark; tether whoami; n=$((n+1)); echo "round $n is over"; }; sleep .1; done`)
	for n, next := range []func(){func() {}, func() { m.start("daemon", "--replace") }, func() { m.kill(); m.start("daemon") }} {
		next()
		if now := m.find(x.ID); now.Exit != nil || now.Pid != x.Pid {
			t.Fatalf("the terminal is %+v, was %+v", now, x)
		}
		must.Do(t, os.WriteFile(filepath.Join(work, fmt.Sprint("go", n)), nil, 0o600))
		prints(x.ID, fmt.Sprintf("round %d is over", n+1))
		y := start("tether whoami; cat " + outside + "; cat /tmp/mark; echo all")
		prints(y.ID, "of the first")
		prints(y.ID, "agent boxed: ")
	}
	out := must.Get(m.door.Read(t.Context(), x.ID, localclient.ReadOptions{}, nil))(t)
	defer out.Close()
	text, err := io.ReadAll(out)
	for _, want := range []string{"of the first", "No such file", "agent boxed: "} {
		if got := strings.Count(string(text), want); err != nil || got != 3 {
			t.Errorf("it has printed %q %d times of 3, %v:\n%s", want, got, err, text)
		}
	}
}

// Two daemons started at once: one has the terminals, the other says that there is one.
func TestTwoDaemonsAtOnce(t *testing.T) {
	m := newMortal(t)
	x := m.spawn(localapi.SpawnRequest{Command: []string{"does", "after:1h"}, Private: true})
	for round := range testkit.Rounds(t, 10, 500) {
		m.kill()
		both := []*exec.Cmd{exec.Command("tether", "daemon"), exec.Command("tether", "daemon")}
		said := make([]bytes.Buffer, len(both))
		ended := make(chan int, len(both))
		for i, c := range both {
			c.Stderr = &said[i]
			must.Do(t, c.Start())
			go func() {
				c.Wait()
				ended <- i
			}()
		}
		loser := <-ended
		if code := both[loser].ProcessState.ExitCode(); code != 1 || !strings.Contains(said[loser].String(), "a daemon is already running") {
			t.Fatalf("round %d: one ended with %d:\n%s", round, code, said[loser].String())
		}
		m.await("the other has the terminal", func(s localapi.Status) bool {
			return s.Pid == both[1-loser].Process.Pid && m.find(x.ID).Pid == x.Pid
		})
		must.Do(t, both[1-loser].Process.Kill())
		<-ended
		m.start("daemon")
	}
}

// A replacement waits for one that began before, and then ends the daemon that this one
// has started.
func TestReplacementWaitsForItsTurn(t *testing.T) {
	m := newMortal(t)
	m.kill()
	next := must.Get(ipc.Lock(filepath.Join(m.home, "run", localapi.NextName)))(t) // as the other one does
	defer next.Close()
	second := exec.Command("tether", "daemon", "--replace", "--background")
	var said testkit.Output
	second.Stderr = &said
	must.Do(t, second.Start())
	ended := make(chan error, 1)
	go func() { ended <- second.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v\n%s", err, said.String())
	case <-time.After(time.Second): // twice as long as it once tried
	}
	m.start("daemon")
	next.Close()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if err := m.daemon.Wait(); err != nil {
		t.Errorf("the first one's daemon: %v", err)
	}
	m.await("another daemon answers", func(s localapi.Status) bool { return s.Pid != m.daemon.Process.Pid })
}

// Replacements at the same time take turns: all of them succeed, the terminal runs on,
// and nothing keeps the next replacement out.
func TestReplacementsAtOnce(t *testing.T) {
	m := newMortal(t)
	x := m.spawn(localapi.SpawnRequest{Command: []string{"does", "after:1h"}, Private: true})
	for round := range testkit.Rounds(t, 4, 100) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		all := make([]*exec.Cmd, 3)
		said := make([]testkit.Output, len(all))
		for i := range all {
			all[i] = exec.CommandContext(ctx, "tether", "daemon", "--replace", "--background")
			all[i].Stderr = &said[i]
			must.Do(t, all[i].Start())
		}
		for i, c := range all {
			if err := c.Wait(); err != nil {
				t.Errorf("round %d: %v\n%s", round, err, said[i].String())
			}
		}
		cancel()
		next, err := ipc.Lock(filepath.Join(m.home, "run", localapi.NextName))
		if err != nil || t.Failed() {
			t.Fatalf("round %d: %v", round, err)
		}
		next.Close()
		testkit.Eventually(t, patience, "the terminal runs on", func() bool {
			now, err := m.door.Find(t.Context(), x.ID)
			return err == nil && now.Pid == x.Pid
		})
	}
}

// A signal to the daemon, as a service manager sends to restart it, leaves the terminals
// running.
func TestSignalLeavesTerminals(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	x := m.spawn(localapi.SpawnRequest{Command: []string{"sleep", "1000"}, Private: true})
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		old := m.daemon
		must.Do(t, old.Process.Signal(sig))
		if err := old.Wait(); err != nil || !strings.Contains(m.said.String(), "1 terminal kept") {
			t.Errorf("%v: %v\n%s", sig, err, m.said.String())
		}
		m.said.Reset()
		m.daemon = nil
		m.start("daemon")
		if now := m.find(x.ID); now.Pid != x.Pid || now.Exit != nil {
			t.Errorf("%v: %+v", sig, now)
		}
	}
}

// A holder that is killed takes its terminal with it. That is said, and nothing of it
// stays.
func TestHolderKilled(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	x := m.spawn(localapi.SpawnRequest{Command: []string{"sh", "-c", `trap '' HUP; echo $PPID; sleep 1000`}})
	w := m.watch(m.uri(x.ID), true)
	var pid int
	testkit.Eventually(t, patience, "it says who holds it", func() bool {
		line, _, whole := strings.Cut(w.shown(), "\r\n")
		return whole && json.Unmarshal([]byte(line), &pid) == nil
	})
	its := must.Get(os.FindProcess(pid))(t)
	must.Do(t, its.Kill())
	testkit.Eventually(t, patience, "the host is told", func() bool { _, exits, _ := w.state(); return len(exits) > 0 })
	if _, exits, _ := w.state(); !slices.Equal(exits, []int64{-99}) {
		t.Errorf("exits %v, want one without a code", exits)
	}
	if now := m.find(x.ID); now.Exit == nil || now.Exit.Code != -1 {
		t.Errorf("exit %+v", now.Exit)
	}
	testkit.Eventually(t, patience, "the child is gone", func() bool { return !alive(x.Pid) })
	if left := m.holders(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// Without a place for holders no terminal starts; the command, status and doctor name the
// reason.
func TestWithoutHolders(t *testing.T) {
	m := newMortal(t)
	place := filepath.Join(m.home, "run", "h")
	if err := os.WriteFile(place, nil, 0o600); err != nil { // in the way of the directory
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "-d", "--", "does", "after:1h"}, {"status"}, {"doctor"}} {
		if out, _ := exec.Command("tether", args...).CombinedOutput(); !strings.Contains(string(out), place) {
			t.Errorf("%v does not name %s:\n%s", args, place, out)
		}
	}
	must.Do(t, os.Remove(place))
	x := m.spawn(localapi.SpawnRequest{Command: []string{"does", "after:1h"}, Private: true})
	if out, _ := command(t, "status"); strings.Contains(out, "degraded") {
		t.Errorf("it is well again, but status says:\n%s", out)
	}
	if _, status := command(t, "stop", "--keep"); status != 0 || !alive(x.Pid) {
		t.Errorf("stop --keep: %d, alive: %t", status, alive(x.Pid))
	}
	if _, status := command(t, "stop"); status != 0 || alive(x.Pid) {
		t.Errorf("stop without a daemon: %d, alive: %t", status, alive(x.Pid))
	}
}

// Who follows or records a terminal goes on at the same byte when the daemon is killed or
// replaced, and ends with the terminal.
func TestFollowingOutlivesDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	const each, rounds = 2000, 4 // lines
	x := m.spawn(localapi.SpawnRequest{Command: []string{"sh", "-c", `printf 'from the b\303\251ginning\n'; for r in 1 2 3 4; do
until [ -e "$0/$r" ]; do sleep 0.02; done
awk -v r="$r" 'BEGIN { for (i = 0; i < 2000; i++) printf "\033[3%dmround %d line %d\033[0m\n", i % 8, r, i }'
done`, m.home}, Private: true, Name: "it"})
	recorded := filepath.Join(m.home, "it.cast")
	type follower struct {
		name      string
		out, said testkit.Output
		cmd       *exec.Cmd
	}
	var all []*follower
	for name, args := range map[string][]string{
		"text": {"read", "-f", "it", "--color", "always"}, "plain": {"read", "-f", "it"}, "raw": {"read", "-f", "it", "--raw"},
		"the last line": {"read", "-f", "it", "--tail", "1"}, "recording": {"record", "it", "--all", "-o", recorded},
	} {
		f := &follower{name: name, cmd: exec.Command("tether", args...)}
		f.cmd.Stdout, f.cmd.Stderr = &f.out, &f.said
		must.Do(t, f.cmd.Start())
		all = append(all, f)
		testkit.Eventually(t, patience, name+" has begun", func() bool {
			data, _ := os.ReadFile(recorded)
			return strings.Contains(f.out.String(), "ginning") || name == "recording" && strings.Contains(string(data), "ginning")
		})
	}
	whole, plain := "from the b\u00e9ginning\r\n", "from the b\u00e9ginning\n"
	for r := 1; r <= rounds; r++ {
		for i := range each {
			whole += fmt.Sprintf("\x1b[3%dmround %d line %d\x1b[0m\r\n", i%8, r, i)
			plain += fmt.Sprintf("round %d line %d\n", r, i)
		}
		must.Do(t, os.WriteFile(filepath.Join(m.home, fmt.Sprint(r)), nil, 0o600))
		switch r { // at any place of the round
		case 1:
			m.kill()
			m.start("daemon")
		case 2:
			m.start("daemon", "--replace")
		case 3:
			testkit.Eventually(t, patience, "the round is over", func() bool { return m.find(x.ID).Bytes == int64(len(whole)) })
			m.kill()
			m.start("daemon")
		}
	}
	for _, f := range all {
		if err := f.cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", f.name, err, f.said.String())
		}
		want, got := whole, f.out.String()
		switch f.name {
		case "plain", "the last line":
			want = plain
		case "recording":
			got = outputIn(t, recorded)
		}
		if got != want {
			t.Errorf("%s: %d bytes instead of %d, %s", f.name, len(got), len(want), f.said.String())
		}
		if !strings.Contains(f.said.String(), "reconnected after") {
			t.Errorf("%s: nothing was said: %s", f.name, f.said.String())
		}
	}
}

// outputIn is the output in a recording, which has to end with an exit.
func outputIn(t *testing.T, file string) (out string) {
	t.Helper()
	data := must.Get(os.ReadFile(file))(t)
	in, err := asciicast.NewReader(bytes.NewReader(data))
	for err == nil {
		var e asciicast.Event
		if e, err = in.Next(); e.Kind == asciicast.Exit {
			return out
		}
		if e.Kind == asciicast.Output {
			out += e.Data
		}
	}
	t.Errorf("the recording has no end: %v", err)
	return out
}

// Who follows a terminal is not told that it has ended when no other daemon comes.
func TestFollowingIsDropped(t *testing.T) {
	m := newMortal(t)
	t.Setenv(awayVar, "1s")
	x := m.spawn(localapi.SpawnRequest{Command: []string{"does", "print:ready", "after:1h"}, Private: true})
	for _, args := range [][]string{{"read", "-f", x.ID}, {"record", x.ID, "--all", "-o", "-"}} {
		c := exec.Command("tether", args...)
		var out, said testkit.Output
		c.Stdout, c.Stderr = &out, &said
		must.Do(t, c.Start())
		testkit.Eventually(t, patience, "it reads", func() bool { return strings.Contains(out.String(), "ready") })
		m.kill()
		_ = c.Wait()
		if c.ProcessState.ExitCode() != localapi.ExitDropped || !strings.Contains(said.String(), "no daemon has started within 1s") {
			t.Errorf("%q: %v: %s", args, c.ProcessState, said.String())
		}
		m.start("daemon")
	}
}

// A person who attaches after the daemon was killed, and again after it was replaced,
// sees text that a program has drawn long ago and no log keeps, while the program
// continues.
func TestScreenOutlivesDaemons(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	p := sit(t, "run", "--private", "--name", "monitor", "--", "sh", "-c", `printf '\033[?1049h\033[2J\033[HTHE %s\033[3;1H' HEADER
awk 'BEGIN { for (i = 0; i < 300000; i++) printf "\033[4;1H\033[Kcounter %d", i }'
while sleep 0.05; do printf '\033[5;1H\033[Kstill counting'; done`)
	p.sees("THE HEADER", "still counting")
	attached := func() {
		t.Helper()
		a := sit(t, "attach", "monitor")
		a.sees("THE HEADER", "counter 299999", "still counting")
		a.pty.Close()
	}
	m.kill()
	m.start("daemon")
	attached()
	m.start("daemon", "--replace")
	attached()
}
