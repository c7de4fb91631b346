package term_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

const value = "hunter2-value"

// rulesMade are the rules that tests have made: that takes a moment.
var rulesMade sync.Map

// redacted are options of a pool whose hosts do not see value.
func redacted(t testing.TB, o redact.Options) term.Options {
	t.Helper()
	made, ok := rulesMade.Load(fmt.Sprint(o))
	if !ok {
		rules := must.Get(redact.Compile(o))(t)
		made, _ = rulesMade.LoadOrStore(fmt.Sprint(o), rules)
	}
	rules := made.(*redact.Rules)
	return term.Options{Outward: rules, Secrets: func(env []string) []string { return redact.Values(env, []string{"*TOKEN*"}) }}
}

var secretEnv = []string{"HOME=/", "MY_TOKEN=" + value}

// outwardText is the output for a host that has everything up to a text offset.
func outwardText(t testing.TB, h term.Handle, from int64) string {
	t.Helper()
	r := must.Get(h.Reader(output.ReaderOptions{View: output.ViewOutward}))(t)
	defer r.Close()
	if !r.SeekText(from) {
		t.Fatalf("there is no text offset %d", from)
	}
	var b strings.Builder
	for buf := make([]byte, 100); ; {
		ev, ok, err := r.TryNext(buf)
		var lagged *output.LaggedError
		switch {
		case errors.As(err, &lagged):
			b.Reset()
			continue
		case err != nil || !ok:
			return b.String()
		}
		b.Write(ev.Data)
	}
}

func hostOf(t testing.TB, pool *term.Pool, name string) term.Handle {
	t.Helper()
	return onlyOf(t, pool, term.Host(name))
}

// onlyOf is the one terminal of a pool, as an actor sees it.
func onlyOf(t testing.TB, pool *term.Pool, a term.Actor) term.Handle {
	t.Helper()
	all := pool.As(a).List()
	if len(all) != 1 {
		t.Fatalf("%v sees %d terminals", a, len(all))
	}
	return all[0]
}

// Hosts see neither secrets nor active sequences; the person sees everything unchanged.
func TestHostsSeeRedactedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, pool := start(t, redacted(t, redact.Options{Tokens: true}), term.Spec{LendTo: []string{"lab"}, Env: secretEnv})
		in := "a " + value + " b\x1b]8;;file:///x\ac\x1b]8;;\a \x1b[31mred\x1b[0m\r\n"
		prints(f, in)
		want := "a ************* b\x1b_-----------\x1b\\c\x1b]8;;\a \x1b[31mred\x1b[0m\r\n"
		if got := outwardText(t, hostOf(t, pool, "lab"), 0); got != want {
			t.Errorf("the host sees %q, want %q", got, want)
		}
		for _, view := range []output.View{output.ViewText, output.ViewScreen, output.ViewRaw} {
			if got := events(t, reader(t, h, output.ReaderOptions{View: view})); len(got) != 1 || got[0].Data != in {
				t.Errorf("view %d: the person sees %v", view, got)
			}
		}
	})
}

// Output printed before a terminal was lent is redacted, too, even if it is too much for
// one pass.
func TestEarlierOutputIsRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, pool := start(t, redacted(t, redact.Options{}), term.Spec{Env: secretEnv})
		line := strings.Repeat("x", 60) + value + "\r\n"
		lines := testkit.Load(3<<20, 384<<10) / len(line)
		prints(f, strings.Repeat(line, lines))
		must.Do(t, h.Lend("lab"))
		time.Sleep(time.Second)
		got := outwardText(t, hostOf(t, pool, "lab"), 0)
		if want := strings.Repeat(strings.ReplaceAll(line, value, "*************"), lines); got != want {
			t.Errorf("the host sees %d bytes, want %d; a value in it: %v", len(got), len(want), strings.Contains(got, value))
		}
		h.Unlend("lab")
		f.Print(value)
		must.Do(t, h.Lend("other"))
		time.Sleep(time.Second)
		if got := outwardText(t, hostOf(t, pool, "other"), 0); strings.Contains(got, value) || !strings.HasSuffix(got, "*************") {
			t.Errorf("lent anew it ends with %q", got[len(got)-50:])
		}
	})
}

// The possible beginning of a secret is held back, for a bounded time, and everything
// behind it, marks too, waits for it.
func TestHeldBack(t *testing.T) {
	for _, c := range []struct {
		name, first string
		held        time.Duration
		then, want  string
	}{
		{"nothing", "plain", 0, " text", "plain text"},
		{"a letter", "$ h", 2 * time.Millisecond, "ello", "$ hello"},
		{"most of a value", "$ hunter2", 200 * time.Millisecond, "-value!", "$ *************!"},
		{"a value and not its end", value, 200 * time.Millisecond, "!", "*************!"},
		{"a title", "\x1b]0;half", 200 * time.Millisecond, " \a!", "\x1b_------\x1b\\!"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, f, pool := start(t, redacted(t, redact.Options{}), term.Spec{LendTo: []string{"lab"}, Env: secretEnv})
				host := hostOf(t, pool, "lab")
				prints(f, c.first)
				if held := len(outwardText(t, host, 0)) < len(c.first); held != (c.held > 0) {
					t.Errorf("held back: %v", held)
				}
				if c.held > 0 {
					time.Sleep(c.held - time.Millisecond)
					synctest.Wait()
					if len(outwardText(t, host, 0)) == len(c.first) {
						t.Errorf("it has left within %v", c.held)
					}
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if len(outwardText(t, host, 0)) != len(c.first) {
					t.Errorf("it is held back after %v", c.held)
				}
				f.Print(c.then)
				time.Sleep(time.Second)
				if got := outwardText(t, host, 0); got != c.want {
					t.Errorf("the host sees %q, want %q", got, c.want)
				}
				_ = h
			})
		})
	}
}

// A waiting host is woken when held text leaves, and before its time it is not.
func TestHeldTextWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, pool := start(t, redacted(t, redact.Options{}), term.Spec{LendTo: []string{"lab"}, Env: secretEnv})
		r := reader(t, hostOf(t, pool, "lab"), output.ReaderOptions{View: output.ViewOutward})
		prints(f, "hunter2")
		if err := h.Resize(term.Size{Cols: 100, Rows: 40}); err != nil { // a mark behind it
			t.Fatal(err)
		}
		began := time.Now()
		wakes := 0
		for {
			ev, ok, err := r.TryNext(make([]byte, 64))
			must.Do(t, err)
			if ok && ev.Mark == nil {
				break
			}
			if ok {
				t.Fatalf("the mark %v comes before the text", ev.Mark.Kind)
			}
			<-r.Ready(1)
			wakes++
		}
		if took := time.Since(began); took < 190*time.Millisecond || took > 210*time.Millisecond || wakes > 3 {
			t.Errorf("woken %d times within %v", wakes, took)
		}
	})
}

// The last output leaves with the exit, even if it may be the beginning of a secret.
func TestNothingIsHeldAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, pool := start(t, redacted(t, redact.Options{}), term.Spec{LendTo: []string{"lab"}, Env: secretEnv})
		host := hostOf(t, pool, "lab")
		f.Print("bye hunt")
		f.End(0)
		<-host.Done()
		if got := outwardText(t, host, 0); got != "bye ****" {
			t.Errorf("the host sees %q", got)
		}
	})
}

// A later daemon shows hosts the same, from any text offset on, and knows the values
// without having their environment.
func TestRedactionOutlivesTheDaemon(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				o := redacted(t, redact.Options{Tokens: true})
				pieces := append([]string{value, value[:5], value[5:], "\x1b]8;;file:x\a", "\x1b]8;;fi", "le:x\a", "\x1bP1;2", "q~~\x1b\\", "-----BEGIN PRIVATE KEY-----\n", "MIIE\n",
					"-----END PRIVATE KEY-----\n", "sk-" + strings.Repeat("a1", 15)}, pieces...)
				v := newVault(1 << 20)
				pool, _, l := keeping(t, v, o, term.Spec{LendTo: []string{"lab"}, Env: secretEnv})
				whole := ""
				for range 4 {
					for range 20 {
						p := pieces[random.IntN(len(pieces))]
						if strings.Contains(p, "%d") {
							p = fmt.Sprintf(p, 7)
						}
						v.print(p)
						synctest.Wait()
					}
					v.print("\r\n")
					time.Sleep(time.Second)
					host := hostOf(t, pool, "lab")
					got := outwardText(t, host, 0)
					if strings.Contains(got, value) {
						t.Fatalf("the host sees %q", got)
					}
					if len(got) < len(whole) {
						t.Fatalf("%d bytes are shown, before %d", len(got), len(whole))
					}
					for range 25 {
						from := random.IntN(len(got))
						// Within the replacement of invalid bytes the offset is rounded.
						if rest := outwardText(t, host, int64(from)); !strings.HasSuffix(got, rest) || len(got)-len(rest) > from {
							t.Fatalf("from %d on the host sees %q, before %q", from, rest, got[from:])
						}
					}
					whole = got
					l.leave(pool)
					pool, _, l = adopting(t, v, o)
				}
				l.leave(pool)
			})
		})
	}
}

// Hosts see a limited number of titles a minute. Titles printed before the lending, or
// before this daemon, do not count.
func TestTitlesLeaveInNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 600
		o := redacted(t, redact.Options{})
		v := newVault(1 << 20)
		pool, h, l := keeping(t, v, o, term.Spec{})
		flood := strings.Repeat("\x1b]0;t\a", 2*most)
		v.print(flood)
		synctest.Wait()
		must.Do(t, h.Lend("lab"))
		sees := func(when, last string, want bool, titles int) {
			t.Helper()
			time.Sleep(time.Second)
			got := outwardText(t, hostOf(t, pool, "lab"), 0)
			if n := strings.Count(got, "]0;t"); n != titles || strings.Contains(got, "]0;"+last) != want {
				t.Errorf("%s: the host sees %d titles, want %d; %q: %v, want %v", when, n, titles, last, !want, want)
			}
		}
		sees("lent", "none", false, most)
		v.print("\x1b]0;now\a" + flood + "\x1b]0;more\a")
		sees("a flood", "more", false, 2*most-1)
		sees("a flood", "now", true, 2*most-1)
		time.Sleep(time.Minute)
		v.print("\x1b]0;later\a")
		sees("later", "later", true, 2*most-1)
		l.leave(pool)
		pool, _, l = adopting(t, v, o)
		sees("another daemon", "later", false, most)
		v.print("\x1b]0;next\a")
		sees("another daemon", "next", true, most)
		l.leave(pool)
	})
}

// The clipboard's contents are part of the text only if that is allowed, for the whole
// life of the terminal.
func TestClipboardLeavesWhereItMay(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v := newVault(1 << 20)
			pool, _, l := keeping(t, v, redacted(t, redact.Options{Clipboard: allowed}), term.Spec{LendTo: []string{"lab"}})
			v.print("a\x1b]52;c;aGk=\ab\x1b]52;c;?\ac")
			synctest.Wait()
			want := "abc"
			if allowed {
				want = "a\x1b]52;c;aGk=\ab\x1b_---\x1b\\c"
			}
			got := outwardText(t, hostOf(t, pool, "lab"), 0)
			l.leave(pool)
			pool, _, l = adopting(t, v, redacted(t, redact.Options{Clipboard: true}))
			again := outwardText(t, hostOf(t, pool, "lab"), 0)
			if strings.Count(got, "-") == 5 {
				want = strings.Replace(want, "---", "-----", 1)
			}
			if got != want || again != want {
				t.Errorf("allowed %v: the host sees %q, after another daemon %q; want %q", allowed, got, again, want)
			}
			l.leave(pool)
		})
	}
}

// Masks are bounded with the log: of fully masked output fewer bytes are kept.
func TestMasksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := redacted(t, redact.Options{})
		o.LogBytes = 64 << 10
		h, f, pool := start(t, o, term.Spec{LendTo: []string{"lab"}, Env: secretEnv})
		for range testkit.Load(2000, 500) {
			f.Print(strings.Repeat("\x1b]5\a", 200))
		}
		time.Sleep(time.Second)
		if i := h.Info(); i.Retained > 40<<10 {
			t.Errorf("%d bytes of tiny sequences are kept", i.Retained)
		}
		if got := outwardText(t, hostOf(t, pool, "lab"), 0); strings.Contains(got, "]") {
			t.Errorf("the host sees %.80q", got)
		}
	})
}
