package tui

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
	"tether/vocab"
)

// fakeDaemon is the daemon for a screen.
type fakeDaemon struct {
	state state
	acts  []string
	err   error
}

func (f *fakeDaemon) look(chosen string) state {
	s := f.state
	for _, t := range s.terminals {
		if t.ID == chosen {
			s.of, s.preview = chosen, []string{"printed by " + t.ID}
		}
	}
	return s
}

func (f *fakeDaemon) lendPorts(id string, ports []string) error {
	return f.act(actPorts, id+" "+strings.Join(ports, " "))
}

func (f *fakeDaemon) lendTo(id string, names []string) error {
	return f.act(actLendTo, id+" "+strings.Join(names, " "))
}

func (f *fakeDaemon) act(what action, id string) error {
	f.acts = append(f.acts, string(what)+" "+id)
	return f.err
}

func (f *fakeDaemon) command(args ...string) (*exec.Cmd, error) {
	f.acts = append(f.acts, strings.Join(args, " "))
	return exec.Command("true"), nil
}

// screenOf is a screen that was shown once.
func screenOf(f *fakeDaemon) model {
	m := model{backend: f}
	m = step(m, tea.WindowSizeMsg{Width: 100, Height: 20})
	m = step(m, f.look(""))
	return step(m, f.look(m.chosen))
}

// step gives the screen a message, and then the immediate result.
func step(m model, msg tea.Msg) model {
	next, cmd := m.Update(msg)
	m = next.(model)
	if cmd == nil {
		return m
	}
	if _, isState := msg.(state); isState {
		return m // the next look is due later
	}
	if answer := cmd(); answer != nil {
		if _, quits := answer.(tea.QuitMsg); !quits {
			return step(m, answer)
		}
	}
	return m
}

func press(m model, keys ...string) model {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		switch k {
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "pgup":
			msg = tea.KeyPressMsg{Code: tea.KeyPgUp}
		case "pgdown":
			msg = tea.KeyPressMsg{Code: tea.KeyPgDown}
		case "\r":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		}
		m = step(m, msg)
	}
	return m
}

func threeTerminals() *fakeDaemon {
	now := time.Now()
	return &fakeDaemon{state: state{
		terminals: []localapi.Terminal{
			{ID: "pty-a", Name: "web", Command: []string{"npm", "run", "dev"}, Started: now, Visible: true, LentTo: []string{"work"}, Owner: "user",
				Listening: []localapi.Listening{{Port: 3000, URL: "http://localhost:3000"}}},
			{ID: "pty-b", Name: "bad\x1b[2Jname", Command: []string{"x"}, Started: now, Owner: "agent:c"},
			{ID: "pty-c", Name: "over", Command: []string{"make"}, Started: now, Visible: true, Exit: &vocab.Exit{Code: 2, At: now}},
		},
		declared:  []localapi.Declared{{Name: "api", State: "down", Since: now}, {Name: "web", State: "running"}},
		hosts:     []localapi.HostStatus{{Name: "work", State: "online"}},
		questions: []localapi.Approval{{ID: "q-1", Actor: "agent:c", Line: "rm -rf build", Cwd: "/src"}},
	}}
}

func TestUIShows(t *testing.T) {
	m := screenOf(threeTerminals())
	text := m.picture()
	for _, want := range []string{
		"tether  2 running · work online · 1 agent request (a)", "> web                      running", "http://localhost:3000",
		"bad\uFFFD[2Jname ", " background  ", "agent:c ", "you ", "1 exited (e shows them)", "api                      down", "printed by pty-a", "pty-a",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "\n") + 1; n != 20 {
		t.Errorf("%d lines in a window of 20:\n%s", n, text)
	}
	m = step(m, state{err: errors.New("nobody listens")})
	if text := m.picture(); !strings.Contains(text, "nobody listens") {
		t.Errorf("without a daemon:\n%s", text)
	}
	if back := step(m, m.backend.look(m.chosen)); back.chosen != "pty-a" || !strings.Contains(back.picture(), "printed by pty-a") {
		t.Errorf("with it again:\n%s", back.picture())
	}
	if m := screenOf(&fakeDaemon{}); !strings.Contains(m.picture(), "no terminals; n starts a shell") || !strings.Contains(m.picture(), "no host is paired") {
		t.Errorf("nothing there:\n%s", m.picture())
	}
}

// In any window there are as many lines as it has, and the chosen terminal and the
// question are among them.
func TestUIInAnyWindow(t *testing.T) {
	for rows := range 30 {
		for _, cols := range []int{1, 2, 20, 80, 300} {
			m := step(screenOf(threeTerminals()), tea.WindowSizeMsg{Width: cols, Height: rows})
			for name, shown := range map[string]model{"the list": m, "the help": press(m, "?"), "a filter": press(m, "/", "w"), "a kill": press(m, "x"), "a question": press(m, "a"), "with a word": press(m, "\r")} {
				_ = shown.View()
				text := shown.picture()
				if n := strings.Count(text, "\n") + 1; rows > 1 && n != rows {
					t.Errorf("%s in %dx%d has %d lines:\n%s", name, cols, rows, n, text)
				}
				if name == "the list" && rows > 1 && !strings.Contains(text, "> web") {
					t.Errorf("in %dx%d what is chosen is not shown:\n%s", cols, rows, text)
				}
			}
		}
	}
}

// A question can be approved only if all of it is visible.
func TestUIQuestionIsShownWhole(t *testing.T) {
	f := threeTerminals()
	f.state.questions[0].Line = "echo harmless" + strings.Repeat(" ", 300) + "; rm -rf 田 ~"
	m := press(screenOf(f), "a")
	if text := m.picture(); !strings.Contains(text, "rm -rf") || !strings.Contains(text, "y approve") {
		t.Errorf("of the question is shown:\n%s", text)
	}
	for line := range strings.Lines(m.picture()) {
		if n := len([]rune(line)); n > 101 {
			t.Errorf("a line of %d characters would be cut: %s", n, line)
		}
	}
	small := step(m, tea.WindowSizeMsg{Width: 20, Height: 5})
	if text := small.picture(); strings.Contains(text, "y approve") {
		t.Errorf("it can be approved in a window that shows only:\n%s", text)
	}
	if small = press(small, "y"); len(f.acts) > 0 || small.asking != askApprove {
		t.Errorf("did %q", f.acts)
	}
	if press(small, "n"); strings.Join(f.acts, ",") != "denied q-1" {
		t.Errorf("did %q", f.acts)
	}
}

// Attaching to an exited terminal would show nothing, because it is left again at once.
func TestUIExited(t *testing.T) {
	m := press(screenOf(threeTerminals()), "e", "G", "\r")
	if !strings.Contains(m.said, "tether read pty-c") {
		t.Errorf("said %q", m.said)
	}
}

func TestUIKeys(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		want string // the acts
		said string
	}{
		{"lend the newest", []string{"l"}, "lent pty-a", "lent web"},
		{"choose, unlend", []string{"j", "down", "up", "up", "u"}, "stopped sharing pty-a", "stopped sharing web"},
		{"down", []string{"j", "j", "down", "p"}, "promoted pty-b", ""},
		{"down to what has exited", []string{"e", "j", "j", "down", "p"}, "promoted pty-c", ""},
		{"the last, the first", []string{"e", "G", "l", "g", "l"}, "lent pty-c,lent pty-a", ""},
		{"pages", []string{"e", "pgdown", "l", "pgup", "l"}, "lent pty-c,lent pty-a", ""},
		{"kill, yes", []string{"j", "x", "y"}, "killed pty-b", ""},
		{"kill, no", []string{"x", "n"}, "", ""},
		{"kill, another key", []string{"x", "q", "l"}, "lent pty-a", ""},
		{"a new shell", []string{"n"}, "shell", ""},
		{"attach", []string{"\r"}, "attach pty-a", ""},
		{"Esc does not quit", []string{"esc", "l"}, "lent pty-a", ""},
		{"help, and back", []string{"?", "q", "l"}, "lent pty-a", ""},
		{"share with some", []string{"t", "a", "n", "n", " ", "-", "b", "o", "b", "\r"}, "changed who may watch pty-a ann -bob", "changed who may watch web"},
		{"open a port", []string{"o", ",", "-", "3", "0", "0", "1", "\r"}, "changed the open ports of pty-a 3000 -3001", "changed the open ports of web"},
		{"share with nobody", []string{"t", "\r", "t", "x", "esc", "l"}, "lent pty-a", ""},
		{"filter", []string{"/", "b", "a", "d", "\r", "l"}, "lent pty-b", ""},
		{"filter what has exited", []string{"/", "O", "V", "e", "\r", "l"}, "lent pty-c", ""},
		{"filter ended", []string{"/", "b", "a", "d", "\r", "esc", "g", "l"}, "lent pty-a", ""},
		{"filter nothing", []string{"/", "q", "q", "\r", "l"}, "", ""},
		{"approve", []string{"a", "y"}, "approved q-1", ""},
		{"deny", []string{"a", "n"}, "denied q-1", ""},
		{"later", []string{"a", "x", "y"}, "", ""},
		{"what means nothing", []string{"z", "Z"}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := threeTerminals()
			m := press(screenOf(f), c.keys...)
			if got := strings.Join(f.acts, ","); got != c.want {
				t.Errorf("did %q, want %q", got, c.want)
			}
			if c.said != "" && m.said != c.said {
				t.Errorf("said %q, want %q", m.said, c.said)
			}
		})
	}
	f := threeTerminals()
	f.err = errors.New("no default host")
	if m := press(screenOf(f), "l"); m.said != "cannot lend web: no default host" {
		t.Errorf("said %q", m.said)
	}
}

// A question about a terminal that has gone meanwhile disappears: the answer would be
// about another one.
func TestUIQuestionIsGone(t *testing.T) {
	f := threeTerminals()
	m := press(screenOf(f), "a")
	f.state.questions = nil
	if m = step(m, f.look(m.chosen)); m.asking != askNothing || m.said != "no longer available" {
		t.Errorf("%+v", m.asking)
	}
	m = press(m, "j", "x")
	f.state.terminals = f.state.terminals[:1]
	if m = press(step(m, f.look(m.chosen)), "y"); len(f.acts) > 0 || m.chosen != "pty-a" {
		t.Errorf("did %q, chose %s", f.acts, m.chosen)
	}
}

// The help names every key, and the bell rings once for each question.
func TestUIHelpAndBell(t *testing.T) {
	f := threeTerminals()
	m := press(screenOf(f), "?")
	for _, want := range []string{"attach; ~. detaches", "start a shell", "filter", "PgUp", "quit"} {
		if !strings.Contains(m.picture(), want) {
			t.Errorf("no %q in the help:\n%s", want, m.picture())
		}
	}
	if cmd := m.ring(m); cmd != nil {
		t.Error("it rings for a question that was there")
	}
	f.state.questions = append(f.state.questions, localapi.Approval{ID: "q-2", Summary: "agent x\x1b asks to run: make\x07", Line: "make secret"})
	next := m.take(f.look(m.chosen))
	cmd := next.ring(m)
	if cmd == nil {
		t.Fatal("it does not ring")
	}
	raw, _ := cmd().(tea.RawMsg)
	if want := "\x1b]9;tether: agent x\uFFFD asks to run: make\uFFFD\x07\x07"; raw.Msg != want {
		t.Errorf("it rings with %q, want %q", raw.Msg, want)
	}
}

// A question that is cut, or hidden behind an error, is not shown whole: it cannot be
// approved here, however large the window is.
func TestUIQuestionIsNotAllShown(t *testing.T) {
	f := threeTerminals()
	f.state.questions[0].Line = strings.Repeat("echo harmless; ", 1000) + "rm -rf ~"
	m := press(step(screenOf(f), tea.WindowSizeMsg{Width: 200, Height: 1000}), "a")
	if text := m.picture(); strings.Contains(text, "rm -rf") || strings.Contains(text, "y approve") || !strings.Contains(text, "tether approvals q-1") {
		t.Errorf("of a long command is shown:\n%s", text)
	}
	if m = press(m, "y"); len(f.acts) > 0 || m.asking != askApprove {
		t.Errorf("did %q", f.acts)
	}
	if text := strings.Join(display.Approval(f.state.questions[0], 0), "\n"); !strings.Contains(text, "rm -rf") || strings.Contains(text, "more bytes") {
		t.Error("asked for by its id, it is not shown in full")
	}
	f = threeTerminals()
	m = step(press(screenOf(f), "a"), state{err: errors.New("nobody listens")})
	if m = press(m, "y"); len(f.acts) > 0 {
		t.Errorf("behind an error: did %q", f.acts)
	}
}

// Behind an error the screen shows neither the chosen terminal nor a question about it,
// so no key acts on it. q quits, as the screen says.
func TestUIKeysBehindAnError(t *testing.T) {
	gone := state{err: errors.New("nobody listens")}
	for _, keys := range [][]string{{"l"}, {"x", "y"}, {"p"}, {"\r"}, {"t", "a", "\r"}, {"o", "1", "\r"}, {"n"}} {
		f := threeTerminals()
		if press(step(screenOf(f), gone), keys...); len(f.acts) > 0 {
			t.Errorf("%q: did %q", keys, f.acts)
		}
		before, last := keys[:len(keys)-1], keys[len(keys)-1]
		f = threeTerminals()
		if press(step(press(screenOf(f), before...), gone), last); len(f.acts) > 0 {
			t.Errorf("%q with an error before the last: did %q", keys, f.acts)
		}
	}
	f := threeTerminals()
	m := step(screenOf(f), gone)
	if _, cmd := m.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil {
		t.Error("q does not quit")
	}
	m = step(m, f.look(m.chosen))
	if press(m, "l"); !slices.Equal(f.acts, []string{"lent pty-a"}) {
		t.Errorf("afterwards: did %q", f.acts)
	}
}
