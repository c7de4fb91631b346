package main

import (
	"cmp"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"tether/agent/local"
)

// uiAct is a person's action, in the words of the last line.
type uiAct string

const (
	actLend    uiAct = "lent"
	actLendTo  uiAct = "changed who may watch"
	actUnlend  uiAct = "stopped sharing"
	actPromote uiAct = "promoted"
	actKill    uiAct = "killed"
	actApprove uiAct = "approved"
	actDeny    uiAct = "denied"
)

// uiVerbs name actions that failed.
var uiVerbs = map[uiAct]string{actLend: "lend", actLendTo: "change who may watch", actUnlend: "stop sharing", actPromote: "promote", actKill: "kill", actApprove: "approve", actDeny: "deny"}

// uiEvery is how long the screen stays unchanged if no key is pressed.
const uiEvery = 500 * time.Millisecond

// uiAsking is a question to the person.
type uiAsking uint8

const (
	askNothing uiAsking = iota
	askKill             // the chosen terminal?
	askApprove          // the first question of an agent's
	askFilter           // which terminals to list
	askNames            // the people who may watch the chosen terminal
	askHelp             // nothing: the keys are shown
)

// uiBackend is uiDoor, or a test's.
type uiBackend interface {
	look(chosen string) uiState
	act(what uiAct, id string) error
	lendTo(id string, names []string) error // a name after "-" may watch no more
	command(args ...string) (*exec.Cmd, error)
}

// uiModel is the whole screen. Update gets a message and returns another model; nothing is shared with concurrent code.
type uiModel struct {
	door    uiBackend
	colours bool

	cols, rows int
	state      uiState
	known      bool             // state is there
	all        []local.Terminal // state.terminals is the listed part
	filter     string           // lists only terminals with this text
	exited     bool             // lists exited terminals, too
	chosen     string           // the id of a terminal
	asking     uiAsking
	about      string // the id that the question is about
	names      string // typed as an answer to askNames
	said       string // of the last act
}

// Messages besides those of bubbletea.
type (
	uiTick struct{}
	uiDone struct{ text string }
	uiBack struct{ err error } // from an attachment or a shell
)

// Init implements tea.Model.
func (m uiModel) Init() tea.Cmd { return m.looking() }

// looking asks for the state. Only when it has come the next is due, so that a slow daemon is not asked twice.
func (m uiModel) looking() tea.Cmd {
	door, chosen := m.door, m.chosen
	return func() tea.Msg { return door.look(chosen) }
}

// Update implements tea.Model.
func (m uiModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch x := msg.(type) {
	case tea.WindowSizeMsg:
		m.cols, m.rows = x.Width, x.Height
	case uiState:
		next := m.take(x)
		return next, tea.Batch(next.ring(m), tea.Tick(uiEvery, func(time.Time) tea.Msg { return uiTick{} }))
	case uiPeek:
		return m.take(uiState(x)), nil
	case uiTick:
		return m, m.looking()
	case uiDone:
		m.said = x.text
	case uiBack:
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
func (m uiModel) take(s uiState) uiModel {
	if s.err != nil { // the former state comes back with the daemon
		m.state.err, m.known = s.err, true
		return m
	}
	if s.of != m.chosen && m.state.of == m.chosen { // chosen while it was asked for
		s.of, s.preview = m.state.of, m.state.preview
	}
	m.state, m.known, m.all = s, true, s.terminals
	m.list()
	if m.asking == askApprove && !slices.ContainsFunc(s.questions, func(q local.Approval) bool { return q.ID == m.about }) ||
		(m.asking == askKill || m.asking == askNames) && m.chosen != m.about {
		m.asking, m.said = askNothing, "no longer available"
	}
	return m
}

// index is where the chosen terminal stands, -1 if nowhere.
func (m *uiModel) index() int {
	return slices.IndexFunc(m.state.terminals, func(t local.Terminal) bool { return t.ID == m.chosen })
}

// list fills state.terminals, and chooses the first if the chosen one is gone.
func (m *uiModel) list() {
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
func matches(t local.Terminal, text string) bool {
	shown := strings.ToLower(strings.Join([]string{t.ID, t.Name, t.Title, t.Cwd, ownerOf(t), shellLine(t.Command)}, "\n"))
	return strings.Contains(shown, strings.ToLower(text))
}

// nameOf is a terminal's displayed name.
func nameOf(t local.Terminal) string { return cmp.Or(t.Name, t.ID) }
