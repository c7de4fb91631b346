//go:build linux

package local_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/pty"
)

// askVar makes the test's program ask, without a name, whether it may see the questions.
const askVar = "TETHER_TEST_ASK_AT"

// sayVar makes it claim more rights: "as NAME", or "approved".
const sayVar = "TETHER_TEST_SAY"

func TestMain(m *testing.M) {
	if socket := os.Getenv(askVar); socket != "" {
		c, ctx := localclient.New(socket), context.Background()
		var err error
		switch what, name, _ := strings.Cut(os.Getenv(sayVar), " "); what {
		case "tcp":
			beTCPClient(name)
			return
		case "as":
			_, err = c.As(name).Approvals(ctx, nil)
		case "whoami":
			var w localapi.Whoami
			w, err = c.Whoami(ctx)
			if err == nil {
				fmt.Printf("%s|%s|%s|%s", w.Actor, w.Why, w.Sign, w.NoSign)
				return
			}
		case "powers":
			beCaller(c)
			return
		case "return":
			beReturner(c)
			return
		case "leave-pty":
			leavePTY()
			return
		case "mcp":
			beAgentsServer(c)
			return
		case "agent":
			beAgent()
			return
		case "pass":
			os.Stdout.WriteString(throughAnother(socket))
			return
		case "hand":
			handOver(socket)
			return
		case "serve":
			address, elsewhere, _ := strings.Cut(name, " ")
			beServer(address, elsewhere)
			return
		case "flood":
			beFlood(socket)
			return
		case "approved":
			_, err = c.Spawn(ctx, localapi.SpawnRequest{Command: []string{"rm", "x"}, Cwd: "/", Door: "acp", Approved: "editor"})
		default:
			_, err = c.Approvals(ctx, nil)
		}
		if err != nil {
			os.Stdout.WriteString(err.Error())
		} else {
			os.Stdout.WriteString("allowed")
		}
		return
	}
	os.Exit(m.Run())
}

// throughAnother asks through a connection that another program has opened, which has
// ended.
func throughAnother(socket string) string {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err.Error()
	}
	self, _ := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), askVar+"="+socket, sayVar+"=hand")
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(ends[1]), "theirs")}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%v: %s", err, text)
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(ends[0], make([]byte, 1), rights, 0)
	if err != nil {
		return err.Error()
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return fmt.Sprint(messages, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err.Error()
	}
	f := os.NewFile(uintptr(fds[0]), "passed")
	conn, err := net.FileConn(f)
	if err != nil {
		return err.Error()
	}
	answers := bufio.NewReader(conn)
	text := ""
	for _, path := range []string{"/v1/approvals", "/v1/whoami", "/v1/terminals"} {
		if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: tether\r\n\r\n"); err != nil {
			return err.Error()
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err.Error()
		}
		body, _ := io.ReadAll(resp.Body)
		text += resp.Status + " " + string(body)
	}
	return text
}

// beAgentsServer is tether mcp: it says when it is served, and ends with its input.
func beAgentsServer(c *localclient.Client) {
	conn, err := c.As("bob").MCP(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("served")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// beAgent is an agent: it has an MCP server, behind a shell, asks, ends the server, and
// asks again, also through a program that has lost its parents.
func beAgent() {
	self, _ := os.Executable()
	server := exec.Command("sh", "-c", `"$SELF"; true`)
	server.Env = append(os.Environ(), sayVar+"=mcp")
	in, _ := server.StdinPipe()
	out, _ := server.StdoutPipe()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "served\n" {
		fmt.Println(line, err)
		return
	}
	ask := func(argv ...string) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), sayVar+"=whoami")
		text, err := cmd.CombinedOutput()
		fmt.Println(string(text), err)
	}
	ask(self)
	in.Close()
	_ = server.Wait()
	ask(self)
	ask("sh", "-c", `"$SELF" | cat`)
}

// handOver opens a connection and hands it to the program at descriptor 3.
func handOver(socket string) {
	conn, err := net.Dial("unix", socket)
	if err == nil {
		var f *os.File
		if f, err = conn.(*net.UnixConn).File(); err == nil {
			err = unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// beFlood opens 1,500 connections, sends half a request on every second one, says how
// many the daemon has closed, and keeps the others.
func beFlood(socket string) {
	var all []net.Conn
	for i := range 1500 {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			fmt.Println(err)
			return
		}
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "GET /v1/terminals HT") // fails if it is closed already
		}
		all = append(all, conn)
	}
	fmt.Println(len(all))
	for {
		for _, conn := range all[:100] {
			conn.Close() // others take their places
		}
		for i := range 100 {
			if conn, err := net.Dial("unix", socket); err == nil {
				all[i] = conn
			}
		}
	}
}

// noReceivers is a Notifier without URLs.
type noReceivers struct{}

func (noReceivers) List(context.Context, bool) (none localapi.Notifications) { return none }

func (noReceivers) Add(string, localapi.ReceiverRequest) (none localapi.NotifyReceiver, err error) {
	return none, nil
}

func (noReceivers) Remove(string) error { return nil }

func (noReceivers) Test(context.Context, string) error { return nil }

// real is a server on a socket, with real terminals.
type real struct {
	pool   *term.Pool
	server *local.Server
	daemon *fakeDaemon
	socket string
	env    []string // of programs that ask it
}

func openReal(t *testing.T, o local.Options, terms ...term.Options) *real {
	t.Helper()
	terms = append(terms, term.Options{})
	testkit.Leaks(t)
	d := &real{socket: filepath.Join(testkit.Home(t), "run", "daemon.sock"), pool: term.NewPool(terms[0])}
	daemon := &fakeDaemon{}
	d.daemon = daemon
	o.Access, o.Daemon, o.Hosts, o.Notifier = d.pool.As, daemon, daemon, noReceivers{}
	addStarter(t, &o, daemon, nil)
	d.server = local.NewServer(o)
	l := must.Get(ipc.Listen(d.socket))(t)
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(l) }()
	t.Cleanup(func() {
		check.OK(t, d.server.Close())
		<-served
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		check.OK(t, d.pool.Close(ctx))
	})
	self := must.Get(os.Executable())(t)
	d.env = append(proc.WithoutTag(os.Environ()), askVar+"="+d.socket, "SELF="+self, "GORACE=atexit_sleep_ms=20")
	return d
}

// says runs a line of sh in a terminal of owner's, and returns the contents of the file
// out.tmp, which it moves to out.
func (d *real) says(t *testing.T, owner term.Actor, line string, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	must.Get(d.pool.As(owner).Spawn(term.Spec{Command: []string{"sh", "-c", line}, Cwd: dir, Env: slices.Concat(d.env, env)}))(t)
	return d.reads(t, dir)
}

func (d *real) reads(t *testing.T, dir string) string {
	t.Helper()
	out := filepath.Join(dir, "out")
	testkit.Eventually(t, patience, "an answer", func() bool { _, err := os.Stat(out); return err == nil })
	text := must.Get(os.ReadFile(out))(t)
	return string(text)
}

// askAndTell is a line that writes the test program's answer to a file.
const askAndTell = `"$SELF" > out.tmp; mv out.tmp out`

// A program that asks as its first act counts as the agent's whose terminal it runs in,
// also with an empty environment, which no mark is in.
func TestFirstActOfAnAgentsProgram(t *testing.T) {
	d := openReal(t, local.Options{})
	for i := range 60 {
		dir := t.TempDir()
		command := []string{"sh", "-c", `exec >out.tmp; "$SELF"; mv out.tmp out`}
		if i%2 == 1 { // the program itself is the terminal's child, and has lost its marks
			command = []string{"env", "-u", proc.TagVar, "-u", proc.AgentVar, "sh", "-c", askAndTell}
		}
		must.Get(d.pool.As(term.Agent("bob")).Spawn(term.Spec{Command: command, Cwd: dir, Env: append(slices.Clip(d.env), sayVar+"=whoami")}))(t)
		if got := d.reads(t, dir); !strings.HasPrefix(got, "agent bob|") {
			t.Fatalf("try %d: it counts as %s", i, got)
		}
	}
}

// The door waits for terminals of agents whose start is under way.
func TestAgentsStartIsWaitedFor(t *testing.T) {
	hold, begun := make(chan bool), make(chan bool)
	w := serve(t, local.Options{}, term.Options{Start: func(_ term.ID, c pty.Command) (term.PTY, error) {
		close(begun)
		<-hold
		return testkit.NewChild(), nil
	}})
	spawned := make(chan error, 1)
	go func() {
		_, err := w.pool.As(term.Agent("bob")).Spawn(term.Spec{Command: []string{"x"}, Cwd: "/"})
		spawned <- err
	}()
	<-begun
	answered := make(chan error, 1)
	go func() { _, err := w.client.Whoami(t.Context()); answered <- err }()
	select {
	case err := <-answered:
		answered <- err
		t.Error("answered before it was known whose child is started")
	case <-time.After(50 * time.Millisecond): // it must not answer: waiting longer would change nothing
	}
	close(hold)
	check.OK(t, errors.Join(<-spawned, <-answered))
}

// An agent's mark counts when nobody knows the terminal; a person's does not.
func TestMarksOfUnknownTerminals(t *testing.T) {
	d := openReal(t, local.Options{})
	for mark, want := range map[string]string{
		proc.Tag("pty-gone"):   "user|no agent has started",
		proc.AgentTag("bob"):   "agent bob|the environment of process",
		proc.AgentTag(""):      "user|",
		proc.AgentTag("h/s-1"): "agent h/s-1|",
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(slices.Clip(d.env), mark, sayVar+"=whoami")
		if text, err := cmd.Output(); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("%s: %q, %v; want %s", mark, text, err, want)
		}
	}
}

// A peer that has ended is nobody: it gets only that answer. Nobody becomes the person by
// passing a connection on.
func TestPeerThatIsGone(t *testing.T) {
	d := openReal(t, local.Options{})
	for _, owner := range []term.Actor{term.User, term.Agent("bob")} {
		got := d.says(t, owner, askAndTell, sayVar+"=pass")
		if strings.Count(got, "403 Forbidden") != 2 || !strings.Contains(got, `"actor":"nobody"`) || !strings.Contains(got, "has ended") || !strings.Contains(got, "tether whoami") {
			t.Errorf("of %s: %s", owner, got)
		}
	}
}

// A command that ends while it looks at something leaves no refusal in the audit log.
// Whoever else has ended does, with the reason.
func TestRefusalsOfWhoHasEnded(t *testing.T) {
	for _, c := range []struct {
		method, upgrade string
		closed, audited bool
	}{
		{"GET", "", true, false},
		{"GET", "", false, true},
		{"GET", "websocket", true, true},
		{"POST", "", true, true},
	} {
		e := must.Get(policy.New(policy.Options{}))(t)
		d := openReal(t, local.Options{Policy: e})
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.closed {
				cancel()
			}
			r := httptest.NewRequestWithContext(ctx, c.method, "/v1/approvals", nil)
			if c.upgrade != "" {
				r.Header.Set("Upgrade", c.upgrade)
			}
			d.server.PassGone(r)
		})
		got := e.Recent()
		if (len(got) > 0) != c.audited || c.audited && !strings.Contains(got[0].Detail, c.method+" by nobody: the program that opened the connection has ended") {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// The agent that has started tether mcp, behind a shell, is that agent, and all that it
// starts, also after its server has ended. The shell that it was started in is the
// person's, before and after.
func TestAgentRunsCommandsOutsideMCP(t *testing.T) {
	d := openReal(t, local.Options{Agents: local.OpenAgents(t.TempDir())})
	got := d.says(t, term.User, `exec >out.tmp; set -m; "$SELF"; TETHER_TEST_SAY=agent "$SELF"; "$SELF"; mv out.tmp out`, sayVar+"=whoami")
	if strings.Count(got, "agent bob|process") != 3 || strings.Count(got, "user|no agent has started") != 2 {
		t.Error(got)
	}
}

// A program that an agent has started acts as that agent, though it does not say so, and
// though it has left its parent and its session. With real terminals and processes.
func TestOriginLowers(t *testing.T) {
	d := openReal(t, local.Options{})
	pool, dir := d.pool, t.TempDir()
	const far = `(setsid sh -c '"$0" > out.tmp; mv out.tmp out' "$SELF" &) ; sleep 1000`
	for _, c := range []struct {
		name, line string
		owner      term.Actor
		promote    bool
		want       string
	}{
		{"the person's", `"$SELF" > out.tmp; mv out.tmp out`, term.User, false, "allowed"},
		{"an agent's", `"$SELF" > out.tmp; mv out.tmp out`, term.Agent("bob"), false, "agent bob may not"},
		{"far from the person", far, term.User, false, "allowed"},
		{"far from an agent", far, term.Agent("bob"), false, "agent bob may not"},
		{"an agent's that says it is another's", `TETHER_TEST_SAY='as eve' "$SELF" > out.tmp; mv out.tmp out`, term.Agent("bob"), false, "agent bob may not act as agent eve"},
		{"an agent's that says so of itself", `TETHER_TEST_SAY='as eve' "$SELF" > out.tmp; mv out.tmp out`, term.Agent("eve"), false, "agent eve may not GET"},
		{"an agent's that says no name", `TETHER_TEST_SAY='as mcp' "$SELF" > out.tmp; mv out.tmp out`, term.Agent("bob"), false, "agent bob may not GET"},
		{"the person's that says it is an agent's", `TETHER_TEST_SAY='as eve' "$SELF" > out.tmp; mv out.tmp out`, term.User, false, "agent eve may not GET"},
		{"an agent's that says it was approved", `TETHER_TEST_SAY=approved "$SELF" > out.tmp; mv out.tmp out`, term.Agent("bob"), false, "a program that an agent started"},
		{"an agent's that was promoted", "until test -e promoted; do sleep 0.01; done; " + far, term.Agent("bob"), true, "agent bob may not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := must.Get(pool.As(c.owner).Spawn(term.Spec{Command: []string{"sh", "-c", c.line}, Cwd: dir, Env: d.env}))(t)
			if c.promote {
				err := h.Promote()
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, "promoted"), nil, 0o600)
				}
				must.Do(t, err)
			}
			out := filepath.Join(dir, "out")
			testkit.Eventually(t, patience, "an answer", func() bool { _, err := os.Stat(out); return err == nil })
			text, err := os.ReadFile(out)
			if err != nil || !strings.HasPrefix(string(text), c.want) {
				t.Errorf("%q, %v; want %q", text, err, c.want)
			}
			check.OK(t, os.Remove(out))
		})
	}
	// A program that was not started in any terminal is the person's.
	cmd := exec.Command(os.Args[0])
	cmd.Env = d.env
	if text, err := cmd.Output(); err != nil || !bytes.HasPrefix(text, []byte("allowed")) {
		t.Errorf("from outside: %q, %v", text, err)
	}
}

// An agent's program that opens as many connections as it can keeps nobody else out, and
// has no more than 64.
func TestAnAgentFloodsTheDoor(t *testing.T) {
	d := openReal(t, local.Options{})
	dir := t.TempDir()
	must.Get(d.pool.As(term.Agent("bob")).Spawn(term.Spec{Command: []string{"sh", "-c", `"$SELF" > out`}, Cwd: dir, Env: append(slices.Clip(d.env), sayVar+"=flood")}))(t)
	testkit.Eventually(t, patience, "the flood", func() bool { text, _ := os.ReadFile(filepath.Join(dir, "out")); return string(text) == "1500\n" })
	for range 5 {
		c := localclient.New(d.socket)
		s, err := c.Status(t.Context())
		c.Close()
		must.Do(t, err)
		for _, of := range s.Connections {
			if of.Of == "agent bob" && of.Open > local.MaxAgentConns {
				t.Fatalf("%+v", s.Connections)
			}
		}
	}
}
