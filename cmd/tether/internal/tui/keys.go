package tui

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
	"tether/vocab"
)

// Help lists the keys of the screen.
const Help = `  ↑ ↓ or k j      select                 enter  attach; ~. detaches
  PgUp PgDn       page up, page down     n      start a shell
  Home End, g G   first, last            l      lend to the default host
  /               filter; Esc clears it  u      stop sharing
  e               show or hide exited    p      promote an agent's terminal
  a               answer an agent        t      share with people by their names
  ?               this help              o      open or close a port to them
  q               quit                   x      kill`

// key carries out a key.
func (m model) key(k string) (tea.Model, tea.Cmd) {
	m.said = ""
	page := max(m.room()/2-1, 1)
	switch k {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "esc":
		m.filter = ""
		m.list()
		return m, nil
	case "?":
		m.asking = askHelp
		return m, nil
	case "/":
		m.asking = askFilter
		return m, nil
	case "e":
		m.exited = !m.exited
		m.list()
		return m, nil
	case "n":
		return m, m.leaving("shell")
	case "up", "k":
		return m.move(-1)
	case "down", "j":
		return m.move(+1)
	case "pgup":
		return m.move(-page)
	case "pgdown", "space":
		return m.move(+page)
	case "home", "g":
		return m.move(-len(m.all))
	case "end", "G":
		return m.move(+len(m.all))
	case "a":
		if len(m.state.questions) == 0 {
			m.said = "no agent requests"
			return m, nil
		}
		m.asking, m.about = askApprove, m.state.questions[0].ID
		return m, nil
	}
	return m.onChosen(k)
}

// onChosen carries out a key for the chosen terminal.
func (m model) onChosen(k string) (tea.Model, tea.Cmd) {
	i := m.index()
	if i < 0 {
		return m, nil
	}
	t := m.state.terminals[i]
	switch k {
	case "enter":
		if t.Exit != nil { // attach would end before the person sees anything
			m.said = display.NameOf(t) + " has exited; read its output with: tether read " + t.ID
			return m, nil
		}
		return m, m.leaving("attach", t.ID)
	case "l":
		return m, m.acting(actLend, t.ID, display.NameOf(t))
	case "t":
		m.asking, m.about, m.words = askNames, t.ID, ""
	case "o":
		m.asking, m.about, m.words = askPorts, t.ID, suggestPort(t)
	case "u":
		return m, m.acting(actUnlend, t.ID, display.NameOf(t))
	case "p":
		return m, m.acting(actPromote, t.ID, display.NameOf(t))
	case "x":
		m.asking, m.about = askKill, t.ID
	}
	return m, nil
}

// answer takes the answer to a yes-or-no question: y, n, or any other key for neither. y
// does not approve a question that is not shown whole.
func (m model) answer(k string) (tea.Model, tea.Cmd) {
	asked, id := m.asking, m.about
	switch {
	case k == "ctrl+c":
		return m, tea.Quit
	case asked == askApprove && (k == "y" || k == "n"):
		if _, whole := m.question(); k == "y" && !whole {
			return m, nil
		}
		m.asking = askNothing
		return m, m.acting(map[string]action{"y": actApprove, "n": actDeny}[k], id, id)
	case asked == askKill && k == "y":
		m.asking = askNothing
		return m, m.acting(actKill, id, m.chosenName())
	}
	m.asking = askNothing
	return m, nil
}

// filtering takes a key of the text that filters the list.
func (m model) filtering(x tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch k := x.String(); {
	case k == "ctrl+c":
		return m, tea.Quit
	case k == "enter":
		m.asking = askNothing
	case k == "esc":
		m.asking, m.filter = askNothing, ""
	case k == "backspace" && m.filter != "":
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-size]
	default:
		m.filter += x.Text
	}
	m.list()
	return m.move(0)
}

// suggestPort returns the answer to askPorts that is probably meant: to open or to close
// the only port on which the terminal listens.
func suggestPort(t localapi.Terminal) string {
	var ports []int
	for _, l := range t.Listening {
		if !slices.Contains(ports, l.Port) {
			ports = append(ports, l.Port)
		}
	}
	if len(ports) != 1 {
		return ""
	}
	for _, l := range t.Loans {
		if slices.ContainsFunc(l.Ports, func(p vocab.LentPort) bool { return p.Port == ports[0] && p.IsOpen() }) {
			return "-" + strconv.Itoa(ports[0])
		}
	}
	return strconv.Itoa(ports[0])
}

// wording takes a key of the names of people who may watch the terminal, or of the ports
// that are open to them. A "-" before a word takes that away.
func (m model) wording(x tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch k := x.String(); {
	case k == "ctrl+c":
		return m, tea.Quit
	case k == "esc":
		m.asking = askNothing
	case k == "backspace" && m.words != "":
		_, size := utf8.DecodeLastRuneInString(m.words)
		m.words = m.words[:len(m.words)-size]
	case k == "enter":
		asked := m.asking
		m.asking = askNothing
		words := strings.FieldsFunc(m.words, func(r rune) bool { return r == ' ' || r == ',' })
		if len(words) == 0 {
			return m, nil
		}
		backend, id, name := m.backend, m.about, m.chosenName()
		if asked == askPorts {
			return m, m.doing(actPorts, name, func() error { return backend.lendPorts(id, words) })
		}
		return m, m.doing(actLendTo, name, func() error { return backend.lendTo(id, words) })
	default:
		m.words += x.Text
	}
	return m, nil
}

func (m model) move(by int) (tea.Model, tea.Cmd) {
	if n := len(m.state.terminals); n > 0 {
		i := min(max(m.index()+by, 0), n-1)
		m.chosen = m.state.terminals[i].ID
	}
	backend, chosen := m.backend, m.chosen
	return m, func() tea.Msg { return peek(backend.look(chosen)) }
}

// peek is a state that was requested besides the regular ones, because another terminal
// was chosen.
type peek state

// acting returns the command that acts on a terminal or a question. Its message names the
// object by name.
func (m model) acting(what action, id, name string) tea.Cmd {
	backend := m.backend
	return m.doing(what, name, func() error { return backend.act(what, id) })
}

func (m model) doing(what action, name string, do func() error) tea.Cmd {
	return func() tea.Msg {
		if err := do(); err != nil {
			return done{"cannot " + verbs[what] + " " + name + ": " + err.Error()}
		}
		return done{string(what) + " " + name}
	}
}

// leaving returns the command that gives the screen to this program with other arguments
// until that ends.
func (m model) leaving(args ...string) tea.Cmd {
	c, err := m.backend.command(args...)
	if err != nil {
		return func() tea.Msg { return back{err} }
	}
	return tea.ExecProcess(c, func(err error) tea.Msg { return back{err} })
}

// ring returns the command that rings the terminal's bell if m has a question that the
// model before did not have.
func (m model) ring(before model) tea.Cmd {
	isNew := func(q localapi.Approval) bool {
		return !slices.ContainsFunc(before.state.questions, func(old localapi.Approval) bool { return old.ID == q.ID })
	}
	if i := slices.IndexFunc(m.state.questions, isNew); i >= 0 {
		return tea.Raw(display.ApprovalBell(m.state.questions[i]))
	}
	return nil
}

// chosenName returns the displayed name of the chosen terminal.
func (m *model) chosenName() string {
	if i := m.index(); i >= 0 {
		return display.Printable(display.NameOf(m.state.terminals[i]), 40)
	}
	return m.chosen
}

// helpLines returns the help screen.
func helpLines() []string { return append([]string{"tether ui", ""}, strings.Split(Help, "\n")...) }
