package term_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit/must"
	"tether/screen"
)

// seenBy is the terminal of a pool as an agent sees it.
func seenBy(t testing.TB, pool *term.Pool, name string) term.Handle {
	t.Helper()
	return onlyOf(t, pool, term.Agent(name))
}

// An agent sees the same as hosts in any view, unless it is configured to see everything.
// The person's view is masked only on demand.
func TestAgentsHaveTheViewOfHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := redacted(t, redact.Options{Tokens: true})
		o.Unredacted = func(a term.Actor) bool { return a == term.Agent("cursor") }
		h, f, pool := start(t, o, term.Spec{Env: secretEnv, Nonce: nonce, Name: "x " + value, Command: []string{"run", value}})
		in := command("login "+value, "a "+value+" b \x1b]8;;file:x\a\r\n", 0) + "\x1b]0;" + value + "\a\x1b]633;P;Cwd=/srv/" + value + ";n0\a"
		prints(f, in)
		for _, c := range []struct {
			who    string
			h      term.Handle
			masked bool
		}{{"the person", h, false}, {"the person, masked", h.Masked(), true}, {"claude", seenBy(t, pool, "claude"), true}, {"cursor", seenBy(t, pool, "cursor"), false}} {
			if c.h.IsMasked() != c.masked {
				t.Errorf("%s: masked is %v", c.who, c.h.IsMasked())
			}
			i := c.h.Info()
			commands, err := c.h.Commands()
			if err != nil || len(commands) != 1 {
				t.Fatalf("%s: %v, %v", c.who, commands, err)
			}
			told := fmt.Sprint(i.Name, i.Title, i.Cwd, i.Command, commands[0].Text())
			if n := strings.Count(told, value); n != 5 && !c.masked || n > 0 && c.masked {
				t.Errorf("%s is told %d secrets: %s", c.who, n, told)
			}
			for _, view := range []output.View{output.ViewText, output.ViewScreen, output.ViewRaw, output.ViewOutward} {
				r := reader(t, c.h, output.ReaderOptions{View: view})
				data, marks, places := "", "", 0
				for buf := make([]byte, 64); ; {
					ev, ok, err := r.TryNext(buf)
					if err != nil || !ok {
						break
					}
					data += string(ev.Data)
					places += ev.Masked
					if ev.Mark != nil {
						marks += ev.Mark.Text + ev.Mark.Command.Text()
					}
				}
				// The person may ask for the hosts' view of the output.
				masked := c.masked || view == output.ViewOutward
				if strings.Contains(data, value) == masked || strings.Contains(marks, value) == c.masked || !strings.Contains(data, " b ") {
					t.Errorf("%s, view %d: %q, marks %q", c.who, view, data, marks)
				}
				want := 0 // the line that was typed, the output, the sequence, the title
				if masked {
					want = 4
				}
				if places != want {
					t.Errorf("%s, view %d: %d places are masked, want %d: %q", c.who, view, places, want, data)
				}
			}
		}
	})
}

// A single read returns everything that was printed a moment ago, however much that is.
func TestAgentReadsAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, f, pool := start(t, redacted(t, redact.Options{}), term.Spec{Env: secretEnv})
		f.Print(strings.Repeat("0123456789 line\r\n", 3<<16) + "hunter2") // may be the beginning of a value
		time.Sleep(time.Second)
		data, lost := readAll(t, reader(t, seenBy(t, pool, "claude"), output.ReaderOptions{}))
		if len(data) != 3<<16*17+7 || lost != 0 || !strings.HasSuffix(string(data), "*******") {
			t.Errorf("an agent reads %d bytes, %d lost, at the end %q", len(data), lost, data[max(len(data)-20, 0):])
		}
	})
}

// shownTo is the screen that an agent sees which comes now.
func shownTo(t *testing.T, h term.Handle) (text string, old output.Screen) {
	t.Helper()
	r := reader(t, h, output.ReaderOptions{View: output.ViewScreen})
	defer r.Close()
	old = must.Get(r.Oldest())(t)
	s := screen.NewState(int(old.Size.Cols), int(old.Size.Rows))
	s.Write(old.Replay)
	for buf := make([]byte, 32<<10); ; {
		ev, ok, err := r.TryNext(buf)
		if err != nil || !ok {
			return s.Text(), old
		}
		s.Advance(ev.Data)
	}
}

// An agent that arrives late sees the present screen, with stars: also for text drawn
// before the oldest output that is kept.
func TestAgentsSeeMaskedScreens(t *testing.T) {
	redraw := strings.Repeat("\x1b[5;1Hcounter 12345\x1b[K", 20000)
	long := strings.Repeat("q7Rk2", 13)
	for _, c := range []struct {
		name, drawn string
		shown       []string // nil: nothing of it can be shown, unless it was searched for secrets when it was printed
	}{
		{"a header", "\x1b[?1049h\x1b[2J\x1b[1;1Htether of " + value + "\x1b[2;1Hready", []string{"tether of *************", "ready", "counter 12345"}},
		{"a secret in colours", "\x1b[?1049h\x1b[2J\x1b[1;1Hit is \x1b[31mhunter2\x1b[32m-value\x1b[m now", []string{"it is ************* now", "counter 12345"}},
		{"the rest of a private key", "\x1b[2J\x1b[1;1H" + long + "\r\n" + long + "\r\n" + long, nil},
		{"its last line", "\x1b[2J\x1b[1;1HabcdEFGH\r\n-----END PRIVATE KEY-----\r\n", nil},
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, early), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := redacted(t, redact.Options{Tokens: true})
					o.LogBytes = 128 << 10
					h, f, pool := start(t, o, term.Spec{Env: secretEnv, Size: term.Size{Cols: 80, Rows: 24}})
					agent := seenBy(t, pool, "claude")
					if early {
						reader(t, agent, output.ReaderOptions{})
					}
					f.Print(c.drawn)
					f.Print(redraw)
					time.Sleep(time.Second)
					if person, old := shownTo(t, h); !old.Exact || !strings.Contains(person, value) && c.shown != nil {
						t.Fatalf("exact: %v, the person sees\n%s", old.Exact, person)
					}
					text, old := shownTo(t, agent)
					if early && c.shown == nil { // no secret: its beginning would have been seen
						if !old.Exact || !strings.Contains(text, "counter 12345") {
							t.Errorf("exact: %v, an agent that was there sees\n%s", old.Exact, text)
						}
						return
					}
					if strings.Contains(text, value) || strings.Contains(text, long) || strings.Contains(string(old.Replay), "hunter2") || old.Exact != (c.shown != nil) {
						t.Errorf("exact: %v, the agent sees\n%s", old.Exact, text)
					}
					for _, want := range c.shown {
						if !strings.Contains(text, want) {
							t.Errorf("the agent does not see %q:\n%s", want, text)
						}
					}
					if want := min(len(c.shown), 1); min(old.Masked, 1) != want {
						t.Errorf("%d places of the old screen are masked, want %d", old.Masked, want)
					}
				})
			})
		}
	}
}

// A secret of which only a part has left the log is shown to no agent.
func TestSecretAcrossTheOldestByte(t *testing.T) {
	const logBytes = 128 << 10
	for _, kept := range []int{1, 5, len(value) - 1} {
		synctest.Test(t, func(t *testing.T) {
			o := redacted(t, redact.Options{Tokens: true})
			o.LogBytes = logBytes
			h, f, pool := start(t, o, term.Spec{Env: secretEnv, Size: term.Size{Cols: 80, Rows: 24}})
			f.Print(strings.Repeat("x", 200) + value)
			f.Print(strings.Repeat("\x1b[9;1Hcount\x1b[K", (logBytes-kept)/14))
			f.Print(strings.Repeat("y", (logBytes-kept)%14))
			time.Sleep(time.Second)
			if i := h.Info(); i.Retained != logBytes || i.Bytes-i.Retained != int64(200+len(value)-kept) {
				t.Fatalf("%d of %d bytes are kept", i.Retained, i.Bytes)
			}
			text, old := shownTo(t, seenBy(t, pool, "claude"))
			if old.Exact || strings.Contains(text, value[:5]) || strings.Contains(text, value[len(value)-kept:]) && kept > 3 || len(old.Replay) > 0 {
				t.Errorf("%d bytes kept, exact: %v, the agent sees\n%s", kept, old.Exact, text)
			}
		})
	}
}
