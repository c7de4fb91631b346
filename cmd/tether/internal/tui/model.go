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
	"tether/internal/jsonspan"
)

// action is a person's action, in the words of its message.
type action string

const (
	actLend    action = "lent"
	actLendTo  action = "changed who may watch"
	actPorts   action = "changed the open ports of"
	actUnlend  action = "stopped sharing"
	actPromote action = "promoted"
	actKill    action = "killed"
	actApprove action = "approved"
	actDeny    action = "denied"
)

// verbs are the words for an action in the message about its failure.
var verbs = map[action]string{actLend: "lend", actLendTo: "change who may watch", actPorts: "change the open ports of", actUnlend: "stop sharing", actPromote: "promote", actKill: "kill", actApprove: "approve", actDeny: "deny"}

// refreshEvery is the pause between an answer of the daemon and the next request.
const refreshEvery = 500 * time.Millisecond

// prompt is a question to the person.
type prompt uint8

const (
	askNothing prompt = iota
	askKill           // the chosen terminal?
	askApprove        // the first question of an agent
	askFilter         // which terminals to list
	askNames          // the people who may watch the chosen terminal
	askPorts          // its ports that are open to them
	askHelp           // nothing: the keys are shown
)

// backend is implemented by daemon and by the fake of the tests. Its methods may block,
// and may be called concurrently.
type backend interface {
	look(chosen string) state
	act(what action, id string) error
	lendTo(id string, names []string) error    // "-" before a name stops that person from watching
	lendPorts(id string, ports []string) error // "-" before a port closes it
	command(args ...string) (*exec.Cmd, error)
}

// model is the state of the whole screen. Update takes a message and returns another
// model. It shares no memory with concurrent code.
type model struct {
	backend backend
	colours bool

	cols, rows int
	state      state
	known      bool                // the daemon has answered, or failed to
	all        []localapi.Terminal // all terminals; state.terminals are those that the list shows
	filter     string              // the list shows only terminals with this text; "" shows all
	exited     bool                // the list shows exited terminals, too
	chosen     string              // the id of a terminal
	asking     prompt
	about      string // the id of the terminal or question that asking is about
	words      string // the text typed so far for askNames or askPorts
	said       string // the message about the last action
}

// Messages besides those of bubbletea.
type (
	tick struct{}
	done struct{ text string }
	back struct{ err error } // an attachment or a shell has ended
)

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return m.looking() }

// looking requests the state. The next request follows only after its answer, so that a
// slow daemon does not get two at once.
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
		if left := new(exec.ExitError); x.err != nil && !errors.As(x.err, &left) { // an exit status comes from the terminal and is no failure
			m.said = x.err.Error()
		}
	case tea.KeyPressMsg:
		if m.state.err != nil { // the screen shows only the error: no key may act on what it hides
			if k := x.String(); k == "q" || k == "ctrl+c" {
				return m, tea.Quit
			}
			return m, nil
		}
		switch m.asking {
		case askNothing:
			return m.key(x.String())
		case askFilter:
			return m.filtering(x)
		case askNames, askPorts:
			return m.wording(x)
		}
		return m.answer(x.String())
	}
	return m, nil
}

// take returns the model with another state. The chosen terminal stays chosen if it still
// exists.
func (m model) take(s state) model {
	if s.err != nil { // keep the former state, which is shown again when the daemon answers
		m.state.err, m.known = s.err, true
		return m
	}
	if s.of != m.chosen && m.state.of == m.chosen { // another terminal was chosen after the request
		s.of, s.preview = m.state.of, m.state.preview
	}
	m.state, m.known, m.all = s, true, s.terminals
	m.list()
	if m.asking == askApprove && !slices.ContainsFunc(s.questions, func(q localapi.Approval) bool { return q.ID == m.about }) ||
		(m.asking == askKill || m.asking == askNames || m.asking == askPorts) && m.chosen != m.about {
		m.asking, m.said = askNothing, "no longer available"
	}
	return m
}

// index returns the index of the chosen terminal in the list, or -1.
func (m *model) index() int {
	return slices.IndexFunc(m.state.terminals, func(t localapi.Terminal) bool { return t.ID == m.chosen })
}

// list fills state.terminals with the terminals to list. It chooses the first of them if
// the chosen one is gone.
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

// matches reports whether a field of a terminal contains the text: id, name, title,
// directory, owner or command. It ignores case.
func matches(t localapi.Terminal, text string) bool {
	shown := strings.ToLower(strings.Join([]string{t.ID, t.Name, t.Title, t.Cwd, display.Checkout(t, nil), display.OwnerOf(t), display.ShellLine(jsonspan.Words(t.Command, t.CommandBytes))}, "\n"))
	return strings.Contains(shown, strings.ToLower(text))
}
