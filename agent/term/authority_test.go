package term_test

import (
	"errors"
	"io"
	"testing"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// TestRights is the table of rights, row by row.
func TestRights(t *testing.T) {
	me, other := term.Agent("me"), term.Agent("other")
	persons := term.Info{ID: "pty-a", Owner: term.User, LentTo: []string{"h"}}
	private := term.Info{ID: "pty-b", Owner: term.User, Private: true}
	mine := term.Info{ID: "pty-c", Owner: me}
	away := term.AgentAt("h", "s1")
	its, withdrawn := term.Info{ID: "pty-e", Owner: away, LentTo: []string{"h"}}, term.Info{ID: "pty-f", Owner: away, LentTo: []string{"g"}}
	promoted := term.Info{ID: "pty-d", Owner: term.User, Visible: true}
	rows := []struct {
		name  string
		actor term.Actor
		info  term.Info
		// One letter per operation in the order of ops: y allowed, n denied, - not even
		// seen.
		want string
	}{
		{"local user, own", term.User, persons, "yyyyyyyn"},
		{"local user, private", term.User, private, "yyyyyyyn"},
		{"local user, an agent's", term.User, mine, "yyyyyyyn"},
		{"agent, its own background", me, mine, "yyynyynn"},
		{"agent, the person's", me, persons, "yynnnnnn"},
		{"agent, promoted", me, promoted, "yynnnnnn"},
		{"agent, another agent's", other, mine, "--------"},
		{"agent, private", me, private, "--------"},
		{"host, lent", term.Host("h"), persons, "yynnnnny"},
		{"host, not lent", term.Host("h"), promoted, "--------"},
		{"another host", term.Host("g"), persons, "--------"},
		{"host, private", term.Host("h"), private, "--------"},
		{"agent at the host, its own", away, its, "yynnnynn"},
		{"agent at the host, its own that is lent there no more", away, withdrawn, "--------"},
		{"agent at the host, the person's that is lent there", away, persons, "yynnnnnn"},
		{"agent at the host, the person's that is not", away, promoted, "--------"},
		{"agent at the host, private", away, private, "--------"},
		{"agent at the host, a local agent's", away, mine, "--------"},
		{"agent at the host, of another session", term.AgentAt("h", "s2"), its, "--------"},
		{"agent at another host", term.AgentAt("g", "s1"), its, "--------"},
		{"local agent, one at the host's", me, its, "--------"},
		{"host, one at the host's", term.Host("h"), its, "yynnnnny"},
		{"nobody", term.Actor{}, persons, "--------"},
	}
	ops := []term.Op{term.OpSee, term.OpRead, term.OpType, term.OpResize, term.OpPromote, term.OpKill, term.OpLend, term.OpDispose}
	for _, row := range rows {
		got := ""
		for _, op := range ops {
			err := term.Allow(row.actor, op, row.info)
			var denied *term.DeniedError
			switch {
			case err == nil:
				got += "y"
			case errors.As(err, &denied):
				got += "n"
			case errors.Is(err, term.ErrNotFound):
				got += "-"
			}
		}
		if got != row.want {
			t.Errorf("%s: see read type resize promote kill lend dispose = %s, want %s", row.name, got, row.want)
		}
	}
}

func TestDeniedErrorNamesAll(t *testing.T) {
	err := term.Allow(term.Host("lab"), term.OpType, term.Info{ID: "pty-a", LentTo: []string{"lab"}})
	if got, want := err.Error(), "host lab may not type into terminal pty-a"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}

func TestHandleRefuses(t *testing.T) {
	h, f, pool := start(t, term.Options{}, term.Spec{LendTo: []string{"lab"}})
	host := pool.As(term.Host("lab"))
	seen := must.Get(host.Find(string(h.ID())))(t)
	for name, err := range map[string]error{
		"type":   seen.Write(t.Context(), []byte("x")),
		"resize": seen.Resize(term.Size{Cols: 10, Rows: 10}),
		"kill":   seen.Kill(t.Context()),
		"lend":   seen.Lend("other"),
		"unlend": seen.Unlend("lab"),
	} {
		var denied *term.DeniedError
		if !errors.As(err, &denied) {
			t.Errorf("%s by a host: %v, want a DeniedError", name, err)
		}
	}
	if _, err := host.Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")}); err == nil {
		t.Error("a host may spawn")
	}
	if f.Typed() != "" || f.Killed() {
		t.Error("a refused operation reached the child")
	}
	must.Do(t, h.Unlend("lab"))
	if _, err := seen.Reader(output.ReaderOptions{}); !errors.Is(err, term.ErrNotFound) {
		t.Errorf("read after unlend: %v, want ErrNotFound", err)
	}
	if got := host.List(); len(got) != 0 {
		t.Errorf("host sees %d terminals after unlend, want 0", len(got))
	}
}

// An agent at a host reads as the host does: until the terminal is withdrawn.
func TestAnAgentAtAHostReadsLentTerminals(t *testing.T) {
	h, f, pool := start(t, term.Options{}, term.Spec{LendTo: []string{"lab"}})
	seen := must.Get(pool.As(term.AgentAt("lab", "s1")).Find(string(h.ID())))(t)
	r := must.Get(seen.Reader(output.ReaderOptions{View: output.ViewOutward}))(t)
	defer r.Close()
	f.Print("hello")
	if ev, err := r.Next(t.Context(), make([]byte, 64)); string(ev.Data) != "hello" || err != nil {
		t.Errorf("it reads %q, %v", ev.Data, err)
	}
	must.Do(t, h.Unlend("lab"))
	if _, err := r.Next(t.Context(), make([]byte, 64)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("after it was withdrawn: %v, want io.ErrClosedPipe", err)
	}
	if err := seen.Kill(t.Context()); !errors.Is(err, term.ErrNotFound) || f.Killed() {
		t.Errorf("kill after it was withdrawn: %v, killed %t", err, f.Killed())
	}
}

// Typed is when the person has typed, not an agent in its own terminal.
func TestTyped(t *testing.T) {
	me := term.Agent("me")
	_, _, pool := start(t, term.Options{}, term.Spec{})
	h := must.Get(pool.As(me).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/")}))(t)
	must.Do(t, h.Write(t.Context(), []byte("ls\r")))
	if at := h.Info().Typed; !at.IsZero() {
		t.Errorf("an agent has typed, and the person at %v", at)
	}
	persons := must.Get(pool.As(term.User).Terminal(h.ID()))(t)
	must.Do(t, persons.Write(t.Context(), []byte("y")))
	if h.Info().Typed.IsZero() {
		t.Error("the person has typed, which nobody knows")
	}
}
