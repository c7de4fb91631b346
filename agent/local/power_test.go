//go:build linux

package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
)

// The attempts of powersOf, and whether they need a sign of a person.
const (
	needsNone  = iota
	needsSign  // always
	needsLater // only once an agent has used the home
)

// deed is a request to the door.
type deed struct {
	name  string
	needs int
	do    func(ctx context.Context, c *localclient.Client) error
}

// deeds are all powers of a person, and requests that need no sign. A person has started
// the terminal mine, but not theirs.
var deeds = []deed{
	{"approve", needsSign, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Approve(ctx, "q-none", true, 0))
	}},
	{"deny", needsNone, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Approve(ctx, "q-none", false, 0))
	}},
	{"revoke", needsNone, func(ctx context.Context, c *localclient.Client) error { return c.Revoke(ctx, "q-none") }},
	{"approvals", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Approvals(ctx, nil)) }},
	{"lend", needsLater, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Lend(ctx, "mine", localapi.LendRequest{}))
	}},
	{"adopt", needsLater, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Adopt(ctx, localapi.AdoptRequest{Pane: "tmux:%3"}))
	}},
	{"panes", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Panes(ctx)) }},
	{"unadopt", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Unadopt(ctx, "mine")) }},
	{"share", needsLater, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Share(ctx, "mine", localapi.ShareRequest{}))
	}},
	{"share here", needsLater, func(ctx context.Context, c *localclient.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		_, wait, err := c.ShareHere(ctx, "mine", localapi.ShareRequest{Here: &localapi.PrivateHost{}})
		if err == nil {
			cancel()
			_ = wait() // ctx's error
		}
		return err
	}},
	{"shares", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Shares(ctx)) }},
	{"unshare", needsNone, func(ctx context.Context, c *localclient.Client) error { return c.Unshare(ctx, "aaaaaaaa") }},
	{"unlend", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Unlend(ctx, "mine", "")) }},
	{"unlend all", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.UnlendAll(ctx, "")) }},
	{"run", needsNone, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Spawn(ctx, localapi.SpawnRequest{Command: []string{"true"}, Cwd: "/"}))
	}},
	{"run and lend", needsLater, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Spawn(ctx, localapi.SpawnRequest{Command: []string{"true"}, Cwd: "/", LendTo: []string{"none"}}))
	}},
	{"pair", needsLater, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Pair(ctx, localapi.PairRequest{URL: "u"}))
	}},
	{"offer", needsLater, func(ctx context.Context, c *localclient.Client) error {
		return second(c.Offer(ctx, localapi.PairRequest{URL: "u"}))
	}},
	{"finish", needsLater, func(ctx context.Context, c *localclient.Client) error { return second(c.Finish(ctx, "1")) }},
	{"unpair", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Unpair(ctx, "none")) }},
	{"tools on", needsSign, func(ctx context.Context, c *localclient.Client) error {
		return second(c.ChangeHost(ctx, "none", localapi.HostChange{Tools: new(true)}))
	}},
	{"tools off", needsNone, func(ctx context.Context, c *localclient.Client) error {
		return second(c.ChangeHost(ctx, "none", localapi.HostChange{Tools: new(false)}))
	}},
	{"rename", needsNone, func(ctx context.Context, c *localclient.Client) error {
		return second(c.ChangeHost(ctx, "none", localapi.HostChange{Name: "n"}))
	}},
	{"token for an agent", needsSign, func(ctx context.Context, c *localclient.Client) error {
		return exists(second(c.CreateToken(ctx, "eve")))
	}},
	{"token of one's own", needsLater, func(ctx context.Context, c *localclient.Client) error {
		return exists(second(c.CreatePersonToken(ctx, "more")))
	}},
	{"show token", needsSign, func(ctx context.Context, c *localclient.Client) error { return second(c.UserToken(ctx)) }},
	{"tokens", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Tokens(ctx)) }},
	{"notify add", needsLater, func(ctx context.Context, c *localclient.Client) error {
		return second(c.AddReceiver(ctx, "phone", localapi.ReceiverRequest{URL: "https://example.com/"}))
	}},
	{"notify remove", needsLater, func(ctx context.Context, c *localclient.Client) error { return c.RemoveReceiver(ctx, "phone") }},
	{"notify test", needsLater, func(ctx context.Context, c *localclient.Client) error { return c.TestReceiver(ctx, "phone") }},
	{"notify ls", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Notifications(ctx, false)) }},
	{"kill", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.Kill(ctx, "none")) }},
	{"list", needsNone, func(ctx context.Context, c *localclient.Client) error { return second(c.List(ctx)) }},
	{"type", needsSign, func(ctx context.Context, c *localclient.Client) error { return typeAt(ctx, c, "mine") }},
	{"type into what nobody has started", needsNone, func(ctx context.Context, c *localclient.Client) error { return typeAt(ctx, c, "theirs") }},
	{"type in an interface", needsSign, func(ctx context.Context, c *localclient.Client) error { return typeInUI(ctx, c, "mine") }},
	{"type in an interface into what nobody has started", needsNone, func(ctx context.Context, c *localclient.Client) error { return typeInUI(ctx, c, "theirs") }},
}

// exists treats an already done deed as done.
func exists(err error) error {
	if e, ok := errors.AsType[*localapi.Error](err); ok && e.Code == localapi.CodeExists {
		return nil
	}
	return err
}

// typeAt attaches and types until the input is echoed, or refused.
func typeAt(ctx context.Context, c *localclient.Client, ref string) error {
	a, err := c.Attach(ctx, ref, localclient.AttachOptions{})
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Write(ctx, []byte("typed")); err != nil {
		return err
	}
	return comesBack(ctx, a)
}

// comesBack waits for any output, or a refusal.
func comesBack(ctx context.Context, a *localclient.Attachment) error {
	for {
		m, err := a.Next(ctx)
		switch {
		case err != nil:
			return err
		case m.Control != nil && m.Control.Type == localapi.ControlError:
			return &localapi.Error{Code: localapi.CodeDenied, Message: m.Control.Message}
		case len(m.Data) > 0:
			return nil
		}
	}
}

// typeInUI types at the WebSocket of user interfaces, and gets the result before the
// answer to a ping.
func typeInUI(ctx context.Context, c *localclient.Client, ref string) error {
	t, err := c.Find(ctx, ref)
	if err != nil {
		return err
	}
	conn, _, err := websocket.Dial(ctx, "ws://"+localapi.Host+"/pty", &websocket.DialOptions{HTTPClient: c.HTTP()})
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	for _, text := range []string{fmt.Sprintf(`{"type":"pty:input","id":%q,"data":"typed"}`, t.ID), `{"type":"ping"}`} {
		if err := conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			return err
		}
	}
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		var m struct{ Type, Error string }
		if err := json.Unmarshal(data, &m); err != nil {
			return err
		}
		switch m.Type {
		case "pty:error":
			return &localapi.Error{Code: localapi.CodeDenied, Message: m.Error}
		case "pong":
			return nil
		}
	}
}

// outcome is the result of a deed, in a word: other faults do not matter.
func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case strings.Contains(err.Error(), "shows no sign of a person"):
		return "no sign"
	case strings.Contains(err.Error(), "agent bob"), strings.Contains(err.Error(), "an agent"):
		return "agent"
	}
	if e, ok := errors.AsType[*localapi.Error](err); ok && e.Code != localapi.CodeDenied && e.Code != localapi.CodeInternal {
		return "done"
	}
	return err.Error()
}

// beCaller does all deeds and prints the result of each. TestMain calls it in a separate
// process.
func beCaller(c *localclient.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c = c.With(os.Getenv(tokenTestVar))
	w, err := c.Whoami(ctx)
	fmt.Printf("whoami=%s|%s|%s %v\n", w.Actor, w.Sign, w.NoSign, err)
	for _, d := range deeds {
		fmt.Printf("%s=%s\n", d.name, outcome(d.do(ctx, c)))
	}
}

// leavePTY starts the test's program at a terminal of its own, leaves the other end of
// that to a shell, and ends. The program asks once the file left is there: until this
// process has ended, it is the maker, and no table has its name.
func leavePTY() {
	env := slices.DeleteFunc(proc.WithoutTag(os.Environ()), func(e string) bool { return strings.HasPrefix(e, sayVar+"=") })
	env = append(env, sayVar+"=powers")
	p, err := pty.Start(pty.Command{Path: "sh", Args: []string{"sh", "-c", "until test -e left; do sleep 0.01; done; " + askAndTell}, Env: env})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	conn, err := p.SyscallConn()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_ = conn.Control(func(fd uintptr) {
		keeper := exec.Command("sh", "-c", "while read -r line <&3; do :; done")
		if err := syscall.SetNonblock(int(fd), false); err != nil {
			fmt.Println(err)
		}
		keeper.ExtraFiles = []*os.File{os.NewFile(fd, "ptmx")}
		if err := keeper.Start(); err != nil {
			fmt.Println(err)
		}
		os.Exit(0)
	})
}

// tokenTestVar is the token that the test's program shows.
const tokenTestVar = "TETHER_TEST_TOKEN"

// Each power of a person, for each kind of caller in testdata/powers.txt, through the
// socket.
func TestPowersOfThePerson(t *testing.T) {
	const all, early, none, agent = "all", "early", "none", "agent"
	owners := map[string]term.Actor{"-": {}, "agent": term.Agent("bob"), "person": term.User, "unsigned": term.User}
	for _, row := range testkit.Table(t, "powers.txt", 7, 25) {
		c := struct {
			want, name string
			virgin     bool       // no agent has used the home
			owner      term.Actor // of the terminal that it runs in; nobody: it runs outside
			signed     bool       // its starter has a sign
			token      string     // -, good, bad
			sign       string     // part of whoami's answer
			line       string
		}{row[0], row[1], row[2] == "new", owners[row[3]], row[3] == "person", row[4], row[5], strings.NewReplacer("SHELL", askAndTell, "SAY", sayVar).Replace(row[6])}
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			tokens := must.Get(local.OpenTokens(state))(t)
			agents := local.OpenAgents(state)
			if !c.virgin {
				must.Do(t, agents.Use())
			}
			d := openReal(t, local.Options{Tokens: tokens, Agents: agents})
			for _, s := range []term.Spec{{Name: "mine"}, {Name: "theirs", Unsigned: true}} {
				s.Command, s.Cwd, s.Env = []string{"cat"}, "/", d.env
				must.Get(d.pool.As(term.User).Spawn(s))(t)
			}
			env := []string{sayVar + "=powers"}
			switch c.token {
			case "good":
				good := must.Get(tokens.CreatePerson("scripts"))(t)
				env = append(env, tokenTestVar+"="+good)
			case "bad":
				env = append(env, tokenTestVar+"=tether_bad")
			}
			var got string
			if c.owner == (term.Actor{}) {
				cmd := exec.Command(os.Args[0])
				cmd.Env = slices.Concat(d.env, env)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				text := must.Get(cmd.Output())(t)
				got = string(text)
			} else {
				dir := t.TempDir()
				must.Get(d.pool.As(c.owner).Spawn(term.Spec{Command: []string{"sh", "-c", c.line}, Cwd: dir, Env: slices.Concat(d.env, env), Unsigned: !c.signed}))(t)
				got = d.reads(t, dir)
			}
			came := map[string]string{}
			for line := range strings.Lines(got) {
				name, what, _ := strings.Cut(strings.TrimSpace(line), "=")
				came[name] = what
			}
			if !strings.Contains(came["whoami"], c.sign) {
				t.Errorf("whoami: %s, want %s", came["whoami"], c.sign)
			}
			for _, d := range deeds {
				want := "done"
				switch {
				case c.want == agent:
					want = "agent"
					if slices.Contains([]string{"run", "list", "kill", "type in an interface", "type in an interface into what nobody has started"}, d.name) {
						continue // other tests cover agents' rights
					}
				case d.needs == needsSign && c.want != all, d.needs == needsLater && c.want == none:
					want = "no sign"
				}
				if came[d.name] != want {
					t.Errorf("%s: %q, want %q", d.name, came[d.name], want)
				}
			}
		})
	}
}

// beReturner types in the background until it is put into the foreground.
func beReturner(c *localclient.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a, err := c.Attach(ctx, "mine", localclient.AttachOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	for refused := 0; ; refused++ {
		if err := a.Write(ctx, []byte("typed")); err != nil {
			fmt.Println(err)
			return
		}
		if err = comesBack(ctx, a); err == nil {
			fmt.Println("typed after refusals:", refused > 0)
			return
		}
		if outcome(err) != "no sign" || os.WriteFile("refused", nil, 0o600) != nil {
			fmt.Println(err)
			return
		}
	}
}

// Who attaches in the background types once the shell has put it into the foreground, and
// not before.
func TestTypingFromTheForeground(t *testing.T) {
	d := openReal(t, local.Options{})
	must.Get(d.pool.As(term.User).Spawn(term.Spec{Name: "mine", Command: []string{"cat"}, Cwd: "/", Env: d.env}))(t)
	got := d.says(t, term.User, `set -m; "$SELF" > out.tmp & until test -e refused; do sleep 0.01; done; fg; mv out.tmp out`, sayVar+"=return")
	if got != "typed after refusals: true\n" {
		t.Error(got)
	}
}

// Connections opened with a revoked token end, and the next request has no sign.
func TestRevokedTokenIsNoSign(t *testing.T) {
	tokens := must.Get(local.OpenTokens(t.TempDir()))(t)
	token := must.Get(tokens.CreatePerson("scripts"))(t)
	if got := tokens.ActorOf(token); got != (term.Actor{}) {
		t.Errorf("on TCP it counts as %s", got)
	}
	d := openReal(t, local.Options{Tokens: tokens})
	ask := func() string {
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.SysProcAttr = append(slices.Clip(d.env), sayVar+"=powers", tokenTestVar+"="+token), &syscall.SysProcAttr{Setsid: true}
		text := must.Get(cmd.Output())(t)
		first, _, _ := strings.Cut(string(text), "\n")
		return first
	}
	if got := ask(); !strings.Contains(got, "your token scripts") {
		t.Error(got)
	}
	must.Do(t, tokens.Revoke("scripts"))
	if got := ask(); !strings.Contains(got, "its token is not valid") {
		t.Error(got)
	}
}

// Every route that is said to be a power is served.
func TestPowersAreServed(t *testing.T) {
	for _, pattern := range local.Powers() {
		if !slices.Contains(local.Patterns(), pattern) {
			t.Errorf("%s is no route", pattern)
		}
	}
}
