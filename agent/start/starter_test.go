package start_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/ports"
	"tether/agent/start"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/dirs"
	"tether/platform/proc"
	"tether/platform/pty"
)

// world starts terminals whose children the test plays, and records the spawned ones.
type world struct {
	*start.Starter
	specs    *start.Specs
	spec     term.Spec // the newest, as it was spawned
	confined int
	refuse   error // of the sandbox
}

func open(t *testing.T, rules func(*config.Policy)) *world {
	t.Helper()
	c := config.Default().Policy
	rules(&c)
	engine := must.Get(policy.New(policy.Options{Config: c}))(t)
	pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return testkit.NewChild(), nil }})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		check.OK(t, pool.Close(ctx))
	})
	login := func(context.Context, bool) ([]string, error) { return []string{"A=1", "SECRET=s", "PATH=/bin"}, nil }
	log := zerolog.Nop()
	specs := &start.Specs{Environment: login, HideEnv: []string{"SECRET"}, Scripts: t.TempDir(), Report: func(string, string) {}, Logger: &log,
		LendTo: func(r start.Request) ([]string, error) { return r.LendTo, nil }}
	w := &world{specs: specs}
	w.Starter = start.New(start.Options{Access: pool.As, Ports: ports.New(ports.Options{Free: func(int) bool { return true }}), Policy: engine, Environment: login,
		Spec: func(ctx context.Context, r start.Request) (term.Spec, error) {
			s, err := specs.Spec(ctx, r)
			w.spec = s
			return s, err
		},
		Confine: func(_ term.Actor, s *term.Spec) error { w.confined++; w.spec = *s; return w.refuse }})
	return w
}

// Every door starts terminals in the same way: the person's terminals are theirs alone,
// an agent's have no pager, no hidden variables, a sandbox and a bound.
func TestStart(t *testing.T) {
	agent := term.Agent("bob")
	for _, c := range []struct {
		name        string
		r           start.Request
		idle, limit bool
	}{
		{"the person", start.Request{Actor: term.User, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorCLI}}, false, false},
		{"an agent's tool", start.Request{Actor: agent, Background: true, Idle: true, Again: true, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorMCP}}, true, false},
		{"an agent's command line", start.Request{Actor: agent, Background: true, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorCLI}}, false, false},
		{"an agent's editor", start.Request{Actor: agent, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorACP}}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, func(p *config.Policy) { p.Limits.CommandTime = config.Duration(time.Hour) })
			c.r.Command, c.r.Cwd, c.r.SetEnv = []string{"true"}, testkit.Abs("/"), []string{"B=2"}
			h := must.Get(w.Start(t.Context(), c.r))(t)
			byAgent := c.r.Actor == agent
			env := w.spec.Env
			if slices.Contains(env, "SECRET=s") == byAgent || slices.Contains(env, "PAGER=cat") != byAgent || !slices.Contains(env, "A=1") || !slices.Contains(env, "B=2") {
				t.Errorf("the environment is %q", env)
			}
			if (w.confined == 1) != byAgent {
				t.Errorf("confined %d times", w.confined)
			}
			if i := h.Info(); i.Owner != c.r.Actor || byAgent && ((w.spec.IdleTimeout > 0) != c.idle || (w.spec.TimeLimit > 0) != c.limit) {
				t.Errorf("%s: idle %v, at most %v", i.Owner, w.spec.IdleTimeout, w.spec.TimeLimit)
			}
		})
	}
}

// In a terminal with a login's environment, tether finds the daemon that has made the
// terminal, wherever that keeps its files.
func TestTerminalsFindTheirDaemon(t *testing.T) {
	home := testkit.Abs("/home/of/the/daemon")
	t.Setenv(dirs.HomeVar, home)
	for _, actor := range []term.Actor{term.User, term.Agent("bob")} {
		w := open(t, func(*config.Policy) {})
		must.Get(w.Start(t.Context(), start.Request{Actor: actor, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorCLI, Command: []string{"true"}, Cwd: testkit.Abs("/")}}))(t)
		if !slices.Contains(w.spec.Env, dirs.HomeVar+"="+home) {
			t.Errorf("%s: the environment is %q", actor, w.spec.Env)
		}
	}
}

// Without limits, a terminal has the umask 022, or a stricter one of the login, whatever
// the daemon has. The person gets what was asked, and an agent nothing looser than the
// daemon's.
func TestLimits(t *testing.T) {
	agent := term.Agent("bob")
	own := proc.Limits{Umask: new(0o077), Nice: new(5), Soft: map[string]int64{"nofile": 100, "core": 0}}
	asked := proc.Limits{Umask: new(0o007), Nice: new(0), Soft: map[string]int64{"nofile": 200, "core": 0}}
	for _, c := range []struct {
		name   string
		actor  term.Actor
		own    proc.Limits
		login  int
		asked  *proc.Limits
		want   string // of those that differ from the daemon's
		notice string
	}{
		{"nothing asked", term.User, own, 0, nil, "umask=022", ""},
		{"a strict login", term.User, own, 0o027, nil, "umask=027", ""},
		{"a loose login", agent, own, 0o002, nil, "umask=022", ""},
		{"as the daemon", agent, own, 0o077, nil, "", ""},
		{"the person", term.User, own, 0o027, &asked, "umask=007 nice=0 nofile=200", ""},
		{"without a umask", term.User, own, 0o027, &proc.Limits{Nice: new(7)}, "umask=027 nice=7", ""},
		{"looser", agent, own, 0o020, &asked, "umask=027", "an agent cannot loosen limits: umask=007 nice=0 nofile=200 is not set"},
		{"stricter", agent, own, 0, &proc.Limits{Umask: new(0o177), Nice: new(6), Soft: map[string]int64{"nofile": 99}}, "umask=177 nice=6 nofile=99", ""},
		{"no such limits", term.User, proc.Limits{}, 0, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, func(*config.Policy) {})
			w.specs.Own, w.specs.Umask = c.own, func(context.Context) int { return c.login }
			h := must.Get(w.Start(t.Context(), start.Request{Actor: c.actor, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorCLI, Command: []string{"true"}, Cwd: testkit.Abs("/"), Limits: c.asked}}))(t)
			if got, notice := w.spec.Limits.String(), h.Info().Notice; got != c.want || notice != c.notice {
				t.Errorf("%q, %q", got, notice)
			}
		})
	}
}

// Requests that the policy denies, that are invalid or that cannot be confined do not
// run.
func TestRefused(t *testing.T) {
	agent := term.Agent("bob")
	for _, c := range []struct {
		name string
		r    start.Request
		is   func(error) bool
	}{
		{"denied", start.Request{Actor: term.Agent("mallory"), SpawnRequest: localapi.SpawnRequest{Command: []string{"true"}}}, func(err error) bool { return errorAs[*policy.Refusal](err) != nil }},
		{"a line and a command", start.Request{SpawnRequest: localapi.SpawnRequest{Command: []string{"true"}, Line: "true"}}, invalid},
		{"a NUL", start.Request{SpawnRequest: localapi.SpawnRequest{Command: []string{"a\x00"}}}, invalid},
		{"a variable without a name", start.Request{SpawnRequest: localapi.SpawnRequest{Command: []string{"true"}, SetEnv: []string{"=1"}}}, invalid},
		{"a policy that is none", start.Request{SpawnRequest: localapi.SpawnRequest{Command: []string{"true"}, OnSlow: "stop"}}, invalid},
		{"no sandbox", start.Request{Actor: agent, SpawnRequest: localapi.SpawnRequest{Command: []string{"true"}}}, func(err error) bool { return err != nil && strings.Contains(err.Error(), "no sandbox") }},
	} {
		w := open(t, func(p *config.Policy) {
			p.Principals = []config.PolicyIdentity{{Name: "agent:mallory", Default: "deny"}}
		})
		w.refuse = errors.New("no sandbox")
		c.r.Cwd = testkit.Abs("/")
		if c.r.Actor == (term.Actor{}) {
			c.r.Actor = term.User
		}
		if _, err := w.Start(t.Context(), c.r); !c.is(err) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A prepared start has its id before, and asks the policy when it begins.
func TestPrepare(t *testing.T) {
	w := open(t, func(*config.Policy) {})
	id, begin, err := w.Prepare(t.Context(), start.Request{Actor: term.User, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorConfig, Line: "true", Cwd: testkit.Abs("/")}})
	if err != nil || id == "" {
		t.Fatal(id, err)
	}
	if h, err := begin(); err != nil || h.ID() != id {
		t.Errorf("started %s, %v; want %s", h.ID(), err, id)
	}
}

func invalid(err error) bool {
	e := errorAs[*start.Error](err)
	return e != nil && e.Kind == start.Invalid
}

func errorAs[E error](err error) E {
	e, _ := errors.AsType[E](err)
	return e
}

// A command gets the port for which its request asks, the policy judges the command with
// the port in it, and the port is free again after a refusal and after the end.
func TestPort(t *testing.T) {
	w := open(t, func(p *config.Policy) {
		p.Rules = []config.PolicyRule{{Name: "no", Effect: "deny", Argv: []string{"serve", "3001"}}, {Name: "yes", Effect: "allow", Argv: []string{"serve"}}}
	})
	request := func(actor term.Actor, port string, words ...string) start.Request {
		return start.Request{Actor: actor, SpawnRequest: localapi.SpawnRequest{Door: policy.DoorCLI, Command: words, Cwd: testkit.Abs("/"), Port: port, SetEnv: []string{"PORT=1", "URL=:{port}"}}}
	}
	h, err := w.Start(t.Context(), request(term.User, "3000", "serve", "--port={port}", "{port}"))
	if err != nil {
		t.Fatal(err)
	}
	if i := h.Info(); i.Port != 3000 || !slices.Equal(i.Command, []string{"serve", "--port=3000", "3000"}) {
		t.Errorf("port %d, command %q", i.Port, i.Command)
	}
	if env := w.spec.Env; !slices.Contains(env, "PORT=3000") || !slices.Contains(env, "URL=:{port}") || slices.Contains(env, "PORT=1") {
		t.Errorf("the environment is %q", env)
	}
	if _, err := w.Start(t.Context(), request(term.User, "3000", "serve")); fmt.Sprint(err) != "port 3000 was just given to another terminal" {
		t.Errorf("the same port again: %v", err)
	}
	if err := h.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err = w.Start(t.Context(), request(term.User, "3000", "serve")); err != nil {
		t.Errorf("the same port after the end: %v", err)
	}
	var refused *policy.Refusal
	for range 2 { // the first refusal has given the port back
		if _, err := w.Start(t.Context(), request(term.Agent("bob"), "3001", "serve", "{port}")); !errors.As(err, &refused) {
			t.Errorf("a command that the policy denies: %v", err)
		}
	}
	configured := request(term.User, "auto", "serve")
	configured.Door, configured.Line, configured.Command = policy.DoorConfig, "serve {port}", nil
	_, begin, err := w.Prepare(t.Context(), configured)
	if err != nil {
		t.Fatal(err)
	}
	if h, err = begin(); err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(h.Info().Port)
	if !slices.Contains(w.spec.Env, "URL=:"+port) || !strings.Contains(strings.Join(h.Info().Command, " "), "serve "+port) {
		t.Errorf("of the configuration, at %s: %q, %q", port, h.Info().Command, w.spec.Env)
	}
	h, err = w.Start(t.Context(), request(term.User, "", "serve", "{port}"))
	if err != nil || h.Info().Port != 0 || h.Info().Command[1] != "{port}" || !slices.Contains(w.spec.Env, "PORT=1") {
		t.Errorf("without a port: %v, %q", err, h.Info().Command)
	}
	if _, err := w.Start(t.Context(), request(term.User, "free", "serve")); fmt.Sprint(err) != `port "free" must be auto or 1 to 65535` {
		t.Errorf("a word: %v", err)
	}
}
