package local_test

import (
	"fmt"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// number is how JSON numbers arrive.
func number(n int) float64 { return float64(n) }

func TestSeedShapes(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, child := w.spawn("n")
	u := w.ui()

	u.ask("pty:attach", tm.ID)
	want := said{"type": "pty:attached", "id": tm.ID, "offset": number(0), "end": number(0), "cols": number(80), "rows": number(24)}
	check.Equal(t, "attached without output", want, u.nextOf("pty:attached"))
	child.Print("output text")
	want = said{"type": "pty:output", "id": tm.ID, "data": "output text", "offset": number(0), "end": number(11)}
	check.Equal(t, "output", want, u.next())
	late := w.ui()
	late.ask("pty:attach", tm.ID)
	want = said{"type": "pty:attached", "id": tm.ID, "history": "output text", "offset": number(0), "end": number(11), "cols": number(80), "rows": number(24)}
	check.Equal(t, "attached with history", want, late.next())
	u.ask("pty:input", tm.ID, "data", "ls -la\n")
	testkit.Eventually(t, patience, "input arrives", func() bool { return child.Typed() == "ls -la\n" })
	u.ask("pty:resize", tm.ID, "cols", 120, "rows", 40)
	want = said{"type": "pty:resized", "id": tm.ID, "cols": number(120), "rows": number(40)}
	for _, u := range []*ui{u, late} {
		check.Equal(t, "resized", want, u.next())
	}
	late.ask("pty:detach", tm.ID)
	if left := late.settled(); len(left) > 0 {
		t.Errorf("detaching is answered with %v", left)
	}
	child.Print("more")
	child.End(3)
	if got := u.next(); got["data"] != "more" {
		t.Errorf("more output: %v", got)
	}
	want = said{"type": "pty:exit", "id": tm.ID, "exitCode": number(3)}
	check.Equal(t, "exit", want, u.next())
	if got := late.next(); got["type"] != "terminal" || got["event"] != "closed" {
		t.Errorf("a detached interface hears %v, want the closed event alone", got)
	}
	u.ask("pty:attach", "pty-nothere")
	want = said{"type": "pty:error", "id": "pty-nothere", "error": "Session not found", "code": "no_such_terminal", "hint": "tether ls lists the terminals"}
	check.Equal(t, "unknown id", want, u.nextOf("pty:error"))
	// What has exited is readable until it is forgotten.
	u.ask("pty:attach", tm.ID)
	if got := u.nextOf("pty:attached"); got["history"] != "output textmore" {
		t.Errorf("history after the exit: %v", got)
	}
	if got := u.next(); got["type"] != "pty:exit" || got["exitCode"] != number(3) {
		t.Errorf("exit after the exit: %v", got)
	}
}

func TestEventsOfTerminals(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("before")
	person, owner, stranger := w.ui(), w.uiOf(w.client.As("a")), w.uiOf(w.client.As("b"))
	all := []*ui{person, owner, stranger}
	for _, u := range all {
		u.settled()
	}
	tm := must.Get(w.client.As("a").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"npm", "run", "dev"}, Name: "dev", Cwd: testkit.Abs("/x")}))(t)
	child := <-w.children
	session := said{"id": tm.ID, "cwd": testkit.Abs("/x"), "owner": "agent", "visible": false, "createdAt": float64(tm.Started.UnixMilli()),
		"command": []any{"npm", "run", "dev"}, "principal": "a", "name": "dev", "title": "dev", "cols": number(80), "rows": number(24)}
	seen := func(u *ui, event string, want said) {
		t.Helper()
		got := u.event(event)
		check.Equal(t, event, map[string]any(want), got["terminal"])
	}
	seen(person, "created", session)
	seen(owner, "created", session)
	child.Print("listening\n")
	for _, u := range []*ui{person, owner} {
		got := u.event("output")
		want := said{"type": "terminal", "event": "output", "terminal": map[string]any(session), "output": "listening\n", "offset": number(0)}
		check.Equal(t, "output", want, got)
	}
	if got := stranger.settled(); len(got) > 0 {
		t.Errorf("another agent hears %v", got)
	}
	h := must.Get(w.pool.As(term.User).Terminal(term.ID(tm.ID)))(t)
	must.Do(t, h.Promote())
	session["owner"], session["visible"] = "user", true
	delete(session, "principal")
	seen(person, "promoted", session)
	seen(owner, "promoted", session)
	seen(stranger, "created", session)
	child.End(0)
	for _, u := range all {
		got := u.event("closed")
		if tm := got["terminal"].(map[string]any); tm["exitCode"] != number(0) || tm["reason"] != "exited" || tm["exitedAt"] == nil {
			t.Errorf("closed: %v", tm)
		}
	}
}

// Who was answered hears everything from then on, however soon it is printed.
func TestBackgroundIsHeardFromTheFirstAnswerOn(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{})
	must.Get(w.client.As("a").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
	child := <-w.children
	for i := range 100 {
		u := w.ui()
		u.settled()
		want := fmt.Sprintln("line", i)
		child.Print(want)
		if got := u.event("output"); got["output"] != want {
			t.Errorf("%q was printed, and is told as %v", want, got)
		}
		u.conn.CloseNow()
	}
}

func TestPersonsTerminalsAlone(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	mine, mineChild := w.spawn("mine")
	tm := must.Get(w.client.As("a").Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
	child := <-w.children
	person, agent := w.ui(), w.uiOf(w.client.As("a"))
	for _, c := range []struct {
		name string
		u    *ui
		id   string
	}{
		{"the person, an agent's", person, tm.ID},
		{"the agent, its own", agent, tm.ID},
		{"the agent, the person's", agent, mine.ID},
	} {
		c.u.settled()
		c.u.ask("pty:input", c.id, "data", "x")
		c.u.ask("pty:resize", c.id, "cols", 5, "rows", 5)
		for range 2 {
			if got := c.u.nextOf("pty:error"); got["code"] != "denied" || got["id"] != c.id {
				t.Errorf("%s: %v", c.name, got)
			}
		}
		c.u.ask("pty:attach", c.id)
		c.u.nextOf("pty:attached")
	}
	if child.Typed()+mineChild.Typed() != "" {
		t.Error("something was typed")
	}
	if got, err := w.client.Find(t.Context(), tm.ID); err != nil || got.Cols != 80 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOneInterfaceManyTerminals(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	u := w.ui()
	ids := map[string]string{}
	var children []*testkit.Child
	for _, name := range []string{"a", "b", "c"} {
		tm, child := w.spawn(name)
		ids[tm.ID] = name
		children = append(children, child)
		u.ask("pty:attach", tm.ID)
		u.nextOf("pty:attached")
	}
	for range 50 {
		for i, c := range children {
			c.Print(string(rune('a' + i)))
		}
	}
	got := map[string]string{}
	for len(got["a"])+len(got["b"])+len(got["c"]) < 150 {
		m := u.nextOf("pty:output")
		got[ids[m["id"].(string)]] += m["data"].(string)
	}
	want := map[string]string{"a": strings.Repeat("a", 50), "b": strings.Repeat("b", 50), "c": strings.Repeat("c", 50)}
	check.Equal(t, "", want, got)
	for id := range ids {
		if tm, err := w.client.Find(t.Context(), id); err != nil || tm.Attached != 1 {
			t.Errorf("attached: %+v, %v", tm, err)
		}
	}
	u.conn.CloseNow()
	testkit.Eventually(t, patience, "nobody is attached", func() bool {
		for id := range ids {
			if tm, err := w.client.Find(t.Context(), id); err != nil || tm.Attached != 0 {
				return false
			}
		}
		return true
	})
}
