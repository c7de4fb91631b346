package tui

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
)

// action is a person's action, in the words of the last line.
type action string

const (
	actLend    action = "lent"
	actLendTo  action = "changed who may watch"
	actUnlend  action = "stopped sharing"
	actPromote action = "promoted"
	actKill    action = "killed"
	actApprove action = "approved"
	actDeny    action = "denied"
)

// verbs name actions that failed.
var verbs = map[action]string{actLend: "lend", actLendTo: "change who may watch", actUnlend: "stop sharing", actPromote: "promote", actKill: "kill", actApprove: "approve", actDeny: "deny"}

// refreshEvery is how long the screen stays unchanged if no key is pressed.
const refreshEvery = 500 * time.Millisecond

// prompt is a question to the person.
type prompt uint8

const (
	askNothing prompt = iota
	askKill           // the chosen terminal?
	askApprove        // the first question of an agent's
	askFilter         // which terminals to list
	askNames          // the people who may watch the chosen terminal
	askHelp           // nothing: the keys are shown
)

// backend is daemon, or a test's.
type backend interface {
	look(chosen string) state
	act(what action, id string) error
	lendTo(id string, names []string) error // a name after "-" may watch no more
	command(args ...string) (*exec.Cmd, error)
}

// model is the whole screen. Update gets a message and returns another model; nothing is shared with concurrent code.
type model struct {
	backend backend
	colours bool

	cols, rows int
	state      state
	known      bool                // state is there
	all        []localapi.Terminal // state.terminals is the listed part
	filter     string              // lists only terminals with this text
	exited     bool                // lists exited terminals, too
	chosen     string              // the id of a terminal
	asking     prompt
	about      string // the id that the question is about
	names      string // typed as an answer to askNames
	said       string // of the last act
}

// Messages besides those of bubbletea.
type (
	tick struct{}
	done struct{ text string }
	back struct{ err error } // from an attachment or a shell
)

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return m.looking() }

// looking asks for the state. Only when it has come the next is due, so that a slow daemon is not asked twice.
func (m model) looking() tea.Cmd {
	backend, chosen := m.backend, m.chosen
	return func() tea.Msg { return backend.look(chosen) }
}

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch x := msg.(type) {
	case tea.WindowSizeMsg:
		m.cols, m.rows = x.Width, x.Height
	case state:
		next := m.take(x)
		return next, tea.Batch(next.ring(m), tea.Tick(refreshEvery, func(time.Time) tea.Msg { return tick{} }))
	case peek:
		return m.take(state(x)), nil
	case tick:
		return m, m.looking()
	case done:
		m.said = x.text
	case back:
		m.said = ""
		if left := new(exec.ExitError); x.err != nil && !errors.As(x.err, &left) { // an exit status is the terminal's
			m.said = x.err.Error()
		}
	case tea.KeyPressMsg:
		switch m.asking {
		case askNothing:
			return m.key(x.String())
		case askFilter:
			return m.filtering(x)
		case askNames:
			return m.naming(x)
		}
		return m.answer(x.String())
	}
	return m, nil
}

// take displays another state. The chosen terminal stays chosen, if it still exists.
func (m model) take(s state) model {
	if s.err != nil { // the former state comes back with the daemon
		m.state.err, m.known = s.err, true
		return m
	}
	if s.of != m.chosen && m.state.of == m.chosen { // chosen while it was asked for
		s.of, s.preview = m.state.of, m.state.preview
	}
	m.state, m.known, m.all = s, true, s.terminals
	m.list()
	if m.asking == askApprove && !slices.ContainsFunc(s.questions, func(q localapi.Approval) bool { return q.ID == m.about }) ||
		(m.asking == askKill || m.asking == askNames) && m.chosen != m.about {
		m.asking, m.said = askNothing, "no longer available"
	}
	return m
}

// index is where the chosen terminal stands, -1 if nowhere.
func (m *model) index() int {
	return slices.IndexFunc(m.state.terminals, func(t localapi.Terminal) bool { return t.ID == m.chosen })
}

// list fills state.terminals, and chooses the first if the chosen one is gone.
func (m *model) list() {
	m.state.terminals = nil
	for _, t := range m.all {
		if (m.filter == "" || matches(t, m.filter)) && (t.Exit == nil || m.exited || m.filter != "" || t.ID == m.chosen) {
			m.state.terminals = append(m.state.terminals, t)
		}
	}
	if m.index() >= 0 {
		return
	}
	m.chosen = ""
	if len(m.state.terminals) > 0 {
		m.chosen = m.state.terminals[0].ID
	}
}

// matches reports whether a terminal's listed text contains the text; case does not matter.
func matches(t localapi.Terminal, text string) bool {
	shown := strings.ToLower(strings.Join([]string{t.ID, t.Name, t.Title, t.Cwd, display.OwnerOf(t), display.ShellLine(t.Command)}, "\n"))
	return strings.Contains(shown, strings.ToLower(text))
}
