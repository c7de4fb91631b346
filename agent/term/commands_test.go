package term_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// A command outlives more commands within it than are remembered: it stays listed and
// running, and its end has its code.
func TestTheOuterCommandIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{Nonce: "n"})
		f.Print("\x1b]633;A;n\a$ \x1b]633;B;n\a\x1b]633;E;ssh box;n\a\x1b]633;C;n\ahello\r\n")
		const within = 1500
		for i := range within {
			f.Print(fmt.Sprintf("\x1b]633;A\a> \x1b]633;B\a\x1b]633;E;ls %d\a\x1b]633;C\ax\x1b]633;D;0\a", i))
		}
		synctest.Wait()
		all, err := h.Commands()
		if err != nil || len(all) > 1001 || all[0].Text() != "ssh box" || !all[0].Running || all[len(all)-1].Within != all[0].N || all[len(all)-1].Verified {
			t.Fatalf("%d commands, %v: %+v … %+v", len(all), err, all[0], all[len(all)-1])
		}
		if i := h.Info(); i.Running == nil || i.Running.Text() != "ssh box" {
			t.Errorf("running: %+v", i.Running)
		}
		r := reader(t, h, output.ReaderOptions{View: output.ViewText, From: h.Info().Bytes})
		prints(f, "\x1b]633;D;3;n\a\x1b]633;A;n\a")
		for buf := make([]byte, 1<<10); ; {
			ev, ok, err := r.TryNext(buf)
			if !ok || err != nil {
				t.Fatalf("its end is not told: %v", err)
			}
			if m := ev.Mark; m != nil && m.Kind == output.MarkCommandFinished {
				if m.Command.N != all[0].N || m.Command.Exit == nil || *m.Command.Exit != 3 || strings.TrimSpace(m.Command.Text()) != "ssh box" {
					t.Errorf("what ended is %+v", m.Command)
				}
				break
			}
		}
		if i := h.Info(); i.Running != nil {
			t.Errorf("running in the end: %+v", i.Running)
		}
	})
}

// Each command of a shell has the checkout of the directory in which it began. Hosts and
// agents there are not told of it, and a command within ssh has none.
func TestCommandsKnowTheirCheckout(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	synctest.Test(t, func(t *testing.T) {
		find := func(dir string, at time.Time, tell func(vocab.Checkout)) {
			if time.Since(at) < time.Second && dir != "/" {
				go tell(vocab.Checkout{Repository: "/app", Worktree: dir, Branch: "of" + dir})
			}
		}
		h, f, pool := start(t, term.Options{Checkout: find}, term.Spec{Nonce: "n", Cwd: "/app"})
		command := func(line, dir string) {
			f.Print("\x1b]633;A;n\a$ \x1b]633;B;n\a\x1b]633;E;" + line + ";n\a\x1b]633;C;n\a\x1b]633;D;0;n\a\x1b]633;P;Cwd=" + dir + ";n\a")
			synctest.Wait()
		}
		command("cd /two", "/two")
		command("cd /", "/")
		command("ls", "/two")
		f.Print("\x1b]633;A;n\a$ \x1b]633;B;n\a\x1b]633;E;ssh box;n\a\x1b]633;C;n\a\x1b]633;A\a> \x1b]633;B\a\x1b]633;E;ls\a\x1b]633;C\ax\x1b]633;D;0\a")
		synctest.Wait()
		of := func(all []vocab.Command) (branches []string) {
			for _, c := range all {
				branch := "-"
				if c.Checkout != nil {
					branch = c.Checkout.Branch
				}
				branches = append(branches, branch)
			}
			return branches
		}
		if got := fmt.Sprint(of(must.Get(h.Commands())(t))); got != "[of/app of/two - of/two -]" {
			t.Errorf("the checkouts are %s", got)
		}
		must.Do(t, h.Lend("lab"))
		for _, actor := range []term.Actor{term.Host("lab"), term.AgentAt("lab", "bot")} {
			lent := must.Get(pool.As(actor).Terminal(h.ID()))(t)
			if got := fmt.Sprint(of(must.Get(lent.Commands())(t))); got != "[- - - - -]" {
				t.Errorf("%v is told %s", actor, got)
			}
		}
	})
}
