package main

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"tether/agent/local"
	"tether/internal/testkit"
)

// fakeUI is the daemon for a screen.
type fakeUI struct {
	state uiState
	acts  []string
	err   error
}

func (f *fakeUI) look(chosen string) uiState {
	s := f.state
	for _, t := range s.terminals {
		if t.ID == chosen {
			s.of, s.preview = chosen, []string{"printed by " + t.ID}
		}
	}
	return s
}

func (f *fakeUI) act(what uiAct, id string) (string, error) {
	f.acts = append(f.acts, string(what)+" "+id)
	return string(what) + " " + id, f.err
}

func (f *fakeUI) attach(string) (*exec.Cmd, error) { return exec.Command("true"), nil }

// screenOf is a screen that was shown once.
func screenOf(f *fakeUI) uiModel {
	m := uiModel{door: f}
	m = step(m, tea.WindowSizeMsg{Width: 100, Height: 20})
	m = step(m, f.look(""))
	return step(m, f.look(m.chosen))
}

// step gives the screen a message, and what comes of it at once.
func step(m uiModel, msg tea.Msg) uiModel {
	next, cmd := m.Update(msg)
	m = next.(uiModel)
	if cmd == nil {
		return m
	}
	if _, isState := msg.(uiState); isState {
		return m // the next look is due later
	}
	if answer := cmd(); answer != nil {
		if _, quits := answer.(tea.QuitMsg); !quits {
			return step(m, answer)
		}
	}
	return m
}

func press(m uiModel, keys ...string) uiModel {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		switch k {
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		}
		m = step(m, msg)
	}
	return m
}

func threeTerminals() *fakeUI {
	now := time.Now()
	return &fakeUI{state: uiState{
		terminals: []local.Terminal{
			{ID: "pty-a", Name: "web", Command: []string{"npm", "run", "dev"}, Started: now, Visible: true, LentTo: []string{"work"}, Owner: "user",
				Listening: []local.Listening{{Port: 3000, URL: "http://localhost:3000"}}},
			{ID: "pty-b", Name: "bad\x1b[2Jname", Command: []string{"x"}, Started: now, Owner: "agent:c"},
			{ID: "pty-c", Name: "over", Command: []string{"make"}, Started: now, Visible: true, Exit: &local.Exit{Code: 2, At: now}},
		},
		declared:  []local.Declared{{Name: "api", State: "down", Since: now}, {Name: "web", State: "running"}},
		hosts:     []local.HostStatus{{Name: "work", State: "online"}},
		questions: []local.Approval{{ID: "q-1", Actor: "agent:c", Line: "rm -rf build", Cwd: "/src"}},
	}}
}

func TestUIShows(t *testing.T) {
	m := screenOf(threeTerminals())
	text := m.picture()
	for _, want := range []string{
		"tether  2 running · work online · 1 questions of agents: a", "web                      running", "http://localhost:3000",
		"bad\uFFFD[2Jname ", " background  ", "> over                     exited 2", "api                      down", "printed by pty-c", "pty-c",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "\n") + 1; n != 20 {
		t.Errorf("%d lines in a window of 20:\n%s", n, text)
	}
	m = step(m, uiState{err: errors.New("nobody listens")})
	if text := m.picture(); !strings.Contains(text, "nobody listens") {
		t.Errorf("without a daemon:\n%s", text)
	}
	if back := step(m, m.door.look(m.chosen)); back.chosen != "pty-c" || !strings.Contains(back.picture(), "printed by pty-c") {
		t.Errorf("with it again:\n%s", back.picture())
	}
	for rows := range 12 { // any window
		m := step(screenOf(threeTerminals()), tea.WindowSizeMsg{Width: 1 + rows, Height: rows})
		_ = m.View()
	}
	if m := screenOf(&fakeUI{}); !strings.Contains(m.picture(), "no terminals; start one with") || !strings.Contains(m.picture(), "no host is paired") {
		t.Errorf("nothing there:\n%s", m.picture())
	}
}

func TestUIKeys(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		want string // the acts
		said string
	}{
		{"lend the last", []string{"l"}, "lent pty-c", "lent pty-c"},
		{"choose, unlend", []string{"k", "up", "up", "u"}, "withdrew pty-a", ""},
		{"down again", []string{"k", "k", "down", "j", "j", "p"}, "promoted pty-c", ""},
		{"kill, yes", []string{"k", "x", "y"}, "killed pty-b", ""},
		{"kill, no", []string{"x", "n"}, "", ""},
		{"kill, another key", []string{"x", "q", "l"}, "lent pty-c", ""},
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
	if m := press(screenOf(f), "l"); m.said != "not lent pty-c: no default host" {
		t.Errorf("said %q", m.said)
	}
}

// A question about what has gone meanwhile is not asked any more: the answer would be about something else.
func TestUIQuestionIsGone(t *testing.T) {
	f := threeTerminals()
	m := press(screenOf(f), "a")
	f.state.questions = nil
	if m = step(m, f.look(m.chosen)); m.asking != askNothing || m.said != "it is gone" {
		t.Errorf("%+v", m.asking)
	}
	m = press(m, "x")
	f.state.terminals = f.state.terminals[:1]
	if m = press(step(m, f.look(m.chosen)), "y"); len(f.acts) > 0 || m.chosen != "pty-a" {
		t.Errorf("did %q, chose %s", f.acts, m.chosen)
	}
}

func TestUIAtATerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	command(t, "run", "--detach", "--private", "--name", "first", "--", "sh", "-c", `echo one; exec sleep 1000`)
	command(t, "run", "--detach", "--private", "--name", "shown", "--", "sh", "-c", `echo preview-text; while read x; do echo "<$x>"; done`)
	p := sit(t, "ui")
	p.sees("\x1b[?1049h", "2 running", "shown", "preview-text", "enter attach")
	p.types("\r")
	p.sees("preview-text")
	p.types("hello\r")
	p.sees("<hello>")
	p.types("~.")
	p.sees("2 running")
	p.types("x")
	p.sees("kill pty-")
	p.types("y")
	p.sees("killed pty-")
	p.types("q")
	p.sees("\x1b[?1049l")
	p.exits(0)
	if out, _ := command(t, "ls"); !strings.Contains(out, "killed") || !strings.Contains(out, "first") {
		t.Errorf("after it:\n%s", out)
	}
	if _, status := command(t, "ui"); status != 2 {
		t.Errorf("without a terminal it exits with %d", status)
	}
}
