package host_test

import (
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// The checkout that a machine reports for a terminal is in the rows of the page and in
// the answers of agents: the one of the announcement, then later ones. Nobody else can
// report it, and what is invalid counts as none.
func TestCheckoutIsShown(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "machine-other", "observer-o", "agent-bot")})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	const uri = "ahp-terminal:/web"
	login := vocab.Checkout{Repository: "/src/app", Worktree: "/src/login", Branch: "feat/login", Commit: "3f2a91c" + strings.Repeat("0", 33)}
	p := clientTerminal(uri, "laptop")
	p.Meta = ahp.AddCheckout(nil, login)
	must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	want := func(c *vocab.Checkout) {
		t.Helper()
		var list []struct{ Checkout *vocab.Checkout }
		use(t, agent, "list_terminals", nil, &list)
		if len(list) != 1 || (list[0].Checkout == nil) != (c == nil) || c != nil && *list[0].Checkout != *c {
			t.Errorf("agents are told %+v, want %+v", list, c)
		}
		_, first := event(t, url, "observer-o")
		if c == nil && strings.Contains(first, `"checkout"`) || c != nil && !strings.Contains(first, `"label":"`+c.Label()+`"`) {
			t.Errorf("the page is told %s, want %+v", first, c)
		}
	}
	say := func(v *viewer, c vocab.Checkout) {
		t.Helper()
		p := ahp.NewState(uri, ahp.InputQuiet, time.UnixMilli(1))
		p.Checkout = c
		must.Do(t, v.peer.SendRaw(t.Context(), ahp.AppendState(nil, p)))
		v.ping()
	}
	want(&login)
	main := vocab.Checkout{Repository: "/src/app", Worktree: "/src/app", Branch: "main"}
	say(laptop, main)
	want(&main)
	say(as(t, url, "machine-other", "other", viewOptions{resume: true}), login)
	want(&main)
	hostile := vocab.Checkout{Repository: "/src/\x1b[31mapp", Worktree: "/src\n", Branch: "a\x1b]0;x\ab"}
	say(laptop, hostile)
	if _, first := event(t, url, "observer-o"); strings.Contains(first, `\u001b`) || strings.Contains(first, `\u0007`) {
		t.Errorf("control characters: %s", first)
	}
	say(laptop, main)
	want(&main)
	for _, bad := range []vocab.Checkout{{}, {Branch: strings.Repeat("x", 256)}, {Worktree: strings.Repeat("x", 5000)}, {Commit: "<b>"}, {Branch: "m", Changes: "yes"}} {
		say(laptop, main)
		say(laptop, bad)
		want(nil)
	}
}
