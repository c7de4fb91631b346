package main

import (
	"cmp"
	"errors"
	"os/exec"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"tether/agent/local"
)

// uiAct is what a person can do, as the last line says it.
type uiAct string

const (
	actLend    uiAct = "lent"
	actUnlend  uiAct = "withdrew"
	actPromote uiAct = "promoted"
	actKill    uiAct = "killed"
	actApprove uiAct = "approved"
	actDeny    uiAct = "denied"
)

// uiEvery is how long the screen stays as it is when no key is pressed.
const uiEvery = 500 * time.Millisecond

// uiAsking is a question to the person.
type uiAsking uint8

const (
	askNothing uiAsking = iota
	askKill             // the chosen terminal?
	askApprove          // the first question of an agent's
)

// uiBackend is uiDoor, or a test's.
type uiBackend interface {
	look(chosen string) uiState
	act(what uiAct, id string) (string, error)
	attach(id string) (*exec.Cmd, error)
}

// uiModel is the whole screen. Update gets a message and returns another model; nothing is shared with what runs beside it.
type uiModel struct {
	door    uiBackend
	colours bool

	cols, rows int
	state      uiState
	known      bool   // state is there
	chosen     string // the id of a terminal
	asking     uiAsking
	about      string // the id that the question is about
	said       string // of the last act
}

// Messages beside those of bubbletea.
type (
	uiTick struct{}
	uiDone struct {
		text string
		err  error
	}
	uiBack struct{ err error } // from an attachment
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
		return m.take(x), tea.Tick(uiEvery, func(time.Time) tea.Msg { return uiTick{} })
	case uiPeek:
		return m.take(uiState(x)), nil
	case uiTick:
		return m, m.looking()
	case uiDone:
		m.said = x.text
		if x.err != nil {
			m.said = "not " + x.text + ": " + x.err.Error()
		}
	case uiBack:
		m.said = ""
		if left := new(exec.ExitError); x.err != nil && !errors.As(x.err, &left) { // an exit status is the terminal's
			m.said = x.err.Error()
		}
	case tea.KeyPressMsg:
		if m.asking != askNothing {
			return m.answer(x.String())
		}
		return m.key(x.String())
	}
	return m, nil
}

// take shows another state. What was chosen stays so, if it is still there.
func (m uiModel) take(s uiState) uiModel {
	if s.err != nil { // what was there comes back with the daemon
		m.state.err, m.known = s.err, true
		return m
	}
	if s.of != m.chosen && m.state.of == m.chosen { // chosen while it was asked for
		s.of, s.preview = m.state.of, m.state.preview
	}
	m.state, m.known = s, true
	if m.index() < 0 {
		m.chosen = ""
		if len(s.terminals) > 0 {
			m.chosen = s.terminals[len(s.terminals)-1].ID
		}
	}
	if m.asking == askApprove && !slices.ContainsFunc(s.questions, func(q local.Approval) bool { return q.ID == m.about }) ||
		m.asking == askKill && m.chosen != m.about {
		m.asking, m.said = askNothing, "it is gone"
	}
	return m
}

// index is where the chosen terminal stands, -1 if nowhere.
func (m *uiModel) index() int {
	return slices.IndexFunc(m.state.terminals, func(t local.Terminal) bool { return t.ID == m.chosen })
}

// key does what a key means.
func (m uiModel) key(k string) (tea.Model, tea.Cmd) {
	m.said = ""
	switch k {
	case "q", "esc", "ctrl+c":
		return m, tea.Quit
	case "up", "k":
		return m.move(-1)
	case "down", "j":
		return m.move(+1)
	case "a":
		if len(m.state.questions) == 0 {
			m.said = "no agent asks for anything"
			return m, nil
		}
		m.asking, m.about = askApprove, m.state.questions[0].ID
		return m, nil
	}
	if m.index() < 0 {
		return m, nil
	}
	switch k {
	case "enter":
		if m.state.terminals[m.index()].Exit != nil { // it would be left again before anything is seen
			m.said = "it has exited; all that is kept: tether read " + m.chosen
			return m, nil
		}
		return m, m.attaching()
	case "l":
		return m, m.acting(actLend, m.chosen)
	case "u":
		return m, m.acting(actUnlend, m.chosen)
	case "p":
		return m, m.acting(actPromote, m.chosen)
	case "x":
		m.asking, m.about = askKill, m.chosen
	}
	return m, nil
}

// answer takes y, or n, which any other key is, too.
func (m uiModel) answer(k string) (tea.Model, tea.Cmd) {
	asked, id := m.asking, m.about
	switch {
	case k == "ctrl+c":
		return m, tea.Quit
	case asked == askApprove && (k == "y" || k == "n"):
		if _, whole := m.question(); k == "y" && !whole {
			return m, nil
		}
		m.asking = askNothing
		return m, m.acting(map[string]uiAct{"y": actApprove, "n": actDeny}[k], id)
	case asked == askKill && k == "y":
		m.asking = askNothing
		return m, m.acting(actKill, id)
	}
	m.asking = askNothing
	return m, nil
}

func (m uiModel) move(by int) (tea.Model, tea.Cmd) {
	if n := len(m.state.terminals); n > 0 {
		i := min(max(m.index()+by, 0), n-1)
		m.chosen = m.state.terminals[i].ID
	}
	door, chosen := m.door, m.chosen
	return m, func() tea.Msg { return uiPeek(door.look(chosen)) }
}

// uiPeek is a state that was asked for beside the usual ones.
type uiPeek uiState

func (m uiModel) acting(what uiAct, id string) tea.Cmd {
	door := m.door
	return func() tea.Msg {
		text, err := door.act(what, id)
		return uiDone{text, err}
	}
}

func (m uiModel) attaching() tea.Cmd {
	c, err := m.door.attach(m.chosen)
	if err != nil {
		return func() tea.Msg { return uiBack{err} }
	}
	return tea.ExecProcess(c, func(err error) tea.Msg { return uiBack{err} })
}

// nameOf is what a terminal is called.
func nameOf(t local.Terminal) string { return cmp.Or(t.Name, t.ID) }
