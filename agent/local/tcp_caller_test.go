//go:build linux

package local_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// tcpVar is where the test's program finds the door on TCP.
const tcpVar = "TETHER_TEST_TCP"

const whoamiRequest = "GET /v1/whoami HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n"

// askTCP asks on a connection for its program's identity, and returns "actor|why|sign|no
// sign".
func askTCP(conn net.Conn, token string) string {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err.Error()
	}
	if _, err := fmt.Fprintf(conn, whoamiRequest, conn.RemoteAddr(), token); err != nil {
		return err.Error()
	}
	return readWhoami(conn)
}

func readWhoami(conn net.Conn) string {
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	var w localapi.Whoami
	if err := json.NewDecoder(resp.Body).Decode(&w); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s|%s|%s|%s", w.Actor, w.Why, w.Sign, w.NoSign)
}

// beTCPClient asks over TCP. Its argument selects more: "hand" passes the connection to
// the program at descriptor 3 after its question was answered, "hide" before.
func beTCPClient(what string) {
	conn, err := net.Dial("tcp", os.Getenv(tcpVar))
	if err != nil {
		fmt.Print(err)
		return
	}
	defer conn.Close()
	if what == "hide" {
		_, err = fmt.Fprintf(conn, whoamiRequest, conn.RemoteAddr(), os.Getenv(tokenTestVar))
	} else {
		fmt.Print(askTCP(conn, os.Getenv(tokenTestVar)))
	}
	if what == "" {
		return
	}
	f, err2 := conn.(*net.TCPConn).File()
	if err = errors.Join(err, err2); err == nil {
		err = unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
	}
	if err != nil {
		fmt.Print(err)
	}
}

// realTCP is a real server with a door on TCP too, the person's token and one of agent
// eve.
type realTCP struct {
	*real
	tokens      *local.Tokens
	agents      *local.Agents
	person, eve string
	serve       func() // answers from now on
}

func listenTCP(t *testing.T) *realTCP {
	t.Helper()
	state := t.TempDir()
	d := &realTCP{agents: local.OpenAgents(state)}
	var err, err2, err3 error
	d.tokens = must.Get(local.OpenTokens(state))(t)
	d.person, err = d.tokens.User()
	d.eve, err2 = d.tokens.Create("eve")
	d.real = openReal(t, local.Options{Tokens: d.tokens, Agents: d.agents})
	l, err3 := local.ListenLoopback("127.0.0.1:0")
	must.Do(t, errors.Join(err, err2, err3))
	served := make(chan error, 1)
	d.serve = sync.OnceFunc(func() { go func() { served <- d.server.ServeTCP(l) }() })
	t.Cleanup(func() {
		d.serve()
		check.OK(t, errors.Join(d.server.Close(), <-served))
	})
	d.env = append(d.env, tcpVar+"="+l.Addr().String())
	return d
}

// Over TCP the process that has opened the connection has priority over the token, which
// is in a file that agents can read.
func TestCallersOnTCP(t *testing.T) {
	d := listenTCP(t)
	d.serve()
	const far = `(setsid sh -c '"$0" > out.tmp; mv out.tmp out' "$SELF" &) ; sleep 1000`
	for _, c := range []struct {
		name  string
		owner term.Actor // of the terminal that the program runs in; nobody: it runs outside
		line  string
		token string
		mark  string
		want  string // how the answer begins
		sign  bool
	}{
		{"an agent's with the person's token", term.Agent("bob"), askAndTell, d.person, "A=", "agent bob|", false},
		{"one far from its parents", term.Agent("bob"), far, d.person, "A=", "agent bob|", false},
		{"one without its environment", term.Agent("bob"), strings.ReplaceAll(askAndTell, `"$SELF"`, `env -u TETHER_AGENT -u TETHER_TERMINAL "$SELF"`), d.person, "A=", "agent bob|", false},
		{"an agent's with another agent's token", term.Agent("bob"), askAndTell, d.eve, "A=", "agent bob|", false},
		{"one that an agent has marked", term.Actor{}, "", d.person, proc.AgentTag("bob"), "agent bob|the environment", false},
		{"the person's", term.User, askAndTell, d.person, "A=", "user|the token of user|your own token|", true},
		{"the person's with an agent's token", term.User, askAndTell, d.eve, "A=", "agent eve|the token of eve|", false},
		{"a program from outside", term.Actor{}, "", d.person, "A=", "user|the token of user|your own token|", true},
		{"a program from outside with an agent's token", term.Actor{}, "", d.eve, "A=", "agent eve|the token of eve|", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := []string{sayVar + "=tcp", tokenTestVar + "=" + c.token, c.mark}
			var got string
			if c.owner == (term.Actor{}) {
				cmd := exec.Command(os.Args[0])
				cmd.Env = slices.Concat(d.env, env)
				text := must.Get(cmd.Output())(t)
				got = string(text)
			} else {
				got = d.says(t, c.owner, c.line, env...)
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("it counts as %s, want %s", got, c.want)
			}
			if _, sign, _ := strings.Cut(got, "|the token of user|"); c.sign != strings.HasPrefix(sign, "your own token|") {
				t.Errorf("its sign: %s", got)
			}
		})
	}
}

// connPair is for a program that passes a connection on: theirs is its descriptor 3,
// receive takes the connection.
func connPair(t *testing.T) (theirs *os.File, receive func() net.Conn) {
	t.Helper()
	ends := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	theirs = os.NewFile(uintptr(ends[1]), "theirs")
	t.Cleanup(func() { theirs.Close(); unix.Close(ends[0]) })
	return theirs, func() net.Conn {
		rights := make([]byte, unix.CmsgSpace(4))
		_, n, _, _, err := unix.Recvmsg(ends[0], make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
		must.Do(t, err)
		messages, err := unix.ParseSocketControlMessage(rights[:n])
		if err != nil || len(messages) != 1 {
			t.Fatal(messages, err)
		}
		fds := must.Get(unix.ParseUnixRights(&messages[0]))(t)
		f := os.NewFile(uintptr(fds[0]), "passed")
		defer f.Close()
		conn := must.Get(net.FileConn(f))(t)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
}

// A caller that has ended is nobody, even if another process has its connection now.
func TestTCPClientThatIsGone(t *testing.T) {
	d := listenTCP(t)
	d.serve()
	theirs, receive := connPair(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.ExtraFiles = append(slices.Clip(d.env), sayVar+"=tcp hand", tokenTestVar+"="+d.person), []*os.File{theirs}
	text, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(text), "user|") {
		t.Fatalf("%s, %v", text, err)
	}
	if got := askTCP(receive(), d.person); !strings.HasPrefix(got, "nobody|") || !strings.Contains(got, "has ended") {
		t.Error(got)
	}
}

// A connection that no process has while its request is answered, such as one on its way
// between two, makes nobody the person.
func TestTCPClientThatHides(t *testing.T) {
	d := listenTCP(t)
	theirs, receive := connPair(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.ExtraFiles = append(slices.Clip(d.env), sayVar+"=tcp hide", tokenTestVar+"="+d.person), []*os.File{theirs}
	if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
		t.Fatalf("%s, %v", text, err)
	}
	d.serve() // the program has ended, and its connection is in the pair
	testkit.Eventually(t, patience, "an agent at the door", d.agents.Used)
	conn := receive()
	must.Do(t, conn.SetDeadline(time.Now().Add(patience)))
	if got := readWhoami(conn); !strings.HasPrefix(got, "agent unknown|no process that has this connection open") {
		t.Error(got)
	}
}

// If no process can be found the token identifies the caller, but gives no power of a
// person; and not even that where the socket is the person's.
func TestTCPClientThatCannotBeFound(t *testing.T) {
	d := listenTCP(t)
	for _, c := range []struct {
		name    string
		foreign bool
		err     error
		token   string
		want    string
	}{
		{"another user's", true, nil, d.person, "user|"},
		{"another user's with an agent's token", true, nil, d.eve, "agent eve|"},
		{"the person's", false, nil, d.person, "agent unknown|"},
		{"the person's with an agent's token", false, nil, d.eve, "agent eve|"},
		{"one that could not be looked for", true, errors.ErrUnsupported, d.person, "agent unknown|"},
		{"one that has closed it", false, proc.ErrNoConnection, d.person, "|"},
	} {
		got := d.tokens.CallerUnfound(c.token, c.foreign, c.err)
		if text := strings.TrimPrefix(fmt.Sprintf("%s|%s", got.Actor, got.Why), "nobody"); !strings.HasPrefix(text, c.want) || got.Sign != "" || got.Actor.Role != term.RoleAgent && got.NoSign == "" {
			t.Errorf("%s: %+v, want %s", c.name, got, c.want)
		}
	}
}
