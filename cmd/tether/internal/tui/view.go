package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tether/cmd/tether/internal/display"
)

// fixedLines is the number of lines besides the list and the preview: the first line, the
// head of the list, the line between, and the last two.
const fixedLines = 5

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.NewView(m.picture())
	v.AltScreen = true
	return v
}

// picture returns the screen's text. bubbletea cuts lines that are too long.
func (m *model) picture() string {
	switch {
	case m.cols == 0:
		return ""
	case m.state.err != nil:
		return "tether: " + display.Printable(m.state.err.Error(), 300) + "\n\nq  quit\n"
	case !m.known:
		return "waiting for the daemon…\n"
	case m.asking == askHelp:
		help := helpLines()
		return m.filled(help[:min(len(help), max(m.rows-1, 0))], "any key: back")
	case m.asking == askApprove:
		lines, _ := m.question()
		return m.filled(lines[:min(len(lines), max(m.rows-1, 0))], m.footer())
	case m.rows < fixedLines+3: // show only the list, and the message or the keys on the last line
		list, _ := m.listed(max(m.rows-1, 1))
		return m.filled(list, cmp.Or(display.Printable(m.said, m.cols), m.footer()))
	}
	room := m.room()
	list, hidden := m.listed(room / 2)
	lines := append([]string{m.summary(), m.bold("  " + row("NAME", m.placed("CHECKOUT"), "STATE", "SINCE", "OWNER", "SHARED WITH", "COMMAND"))}, list...)
	if hidden > 0 {
		lines[1] += fmt.Sprintf("  (%d more)", hidden)
	}
	lines = append(lines, m.rule())
	preview := m.state.preview
	if m.state.of != m.chosen {
		preview = nil
	}
	if left := room - len(list); len(preview) > left {
		preview = preview[len(preview)-left:]
	}
	return m.filled(append(lines, preview...), display.Printable(m.said, m.cols), m.footer())
}

// room returns the number of lines for the list and the preview together.
func (m *model) room() int { return m.rows - fixedLines }

// filled joins lines, and last at the bottom of the window.
func (m *model) filled(lines []string, last ...string) string {
	for len(lines)+len(last) < m.rows {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, last...), "\n")
}

// listed returns the part of the list that fits into room lines, with the chosen
// terminal, and the number of omitted lines.
func (m *model) listed(room int) (lines []string, hidden int) {
	all := m.listLines()
	shown := min(len(all), room)
	from := min(max(m.index()-shown/2, 0), len(all)-shown)
	return all[from : from+shown], len(all) - shown
}

// question returns the agent's question in lines as wide as the window. whole reports
// whether the window shows the whole question: a person must not approve a command that
// they cannot see.
func (m *model) question() (lines []string, whole bool) {
	for _, q := range m.state.questions {
		if q.ID != m.about {
			continue
		}
		for _, l := range display.Approval(q, display.MaxShown) {
			lines = append(lines, folded(l, m.cols)...)
		}
		whole = len(display.ApprovalLine(q)) <= display.MaxShown && len(lines) < m.rows && m.state.err == nil
	}
	return lines, whole
}

// folded divides a line into pieces of at most cols columns. A character that is not
// ASCII counts as two columns, the most that one takes.
func folded(line string, cols int) (pieces []string) {
	from, used := 0, 0
	for i, r := range line {
		wide := 1
		if r > 0x7e {
			wide = 2
		}
		if used += wide; used > cols && i > from {
			pieces = append(pieces, line[from:i])
			from, used = i, wide
		}
	}
	return append(pieces, line[from:])
}

// summary returns the first line.
func (m *model) summary() string {
	running := 0
	for _, t := range m.all {
		if t.Exit == nil {
			running++
		}
	}
	parts := []string{fmt.Sprintf("tether  %d running", running)}
	for _, h := range m.state.hosts {
		parts = append(parts, display.Printable(h.Name, 20)+" "+h.State)
	}
	if len(m.state.hosts) == 0 {
		parts = append(parts, "no host is paired")
	}
	if m.state.degraded > 0 {
		parts = append(parts, display.Count(m.state.degraded, "problem")+" (tether status)")
	}
	if n := len(m.state.questions); n > 0 {
		parts = append(parts, display.Count(n, "agent request")+" (a)")
	}
	return strings.Join(parts, " · ")
}

// listLines returns the lines of the list: the terminals, then declared terminals that
// are not running.
func (m *model) listLines() []string {
	var lines []string
	for _, t := range m.state.terminals {
		state, since := display.StateOf(t)
		line := row(display.Printable(display.NameOf(t), 0), m.placed(display.Checkout(t, m.all)), state, display.Ago(time.Since(since)), display.OwnerOf(t), display.Lent(t), display.Command(t))
		if t.ID == m.chosen {
			line = m.reverse("> " + line)
		} else {
			line = "  " + line
		}
		lines = append(lines, line)
	}
	if m.filter != "" {
		return lines
	}
	for _, d := range m.state.declared {
		if d.State != "running" {
			lines = append(lines, "  "+row(d.Name, m.placed("-"), display.Declared(d), display.Ago(time.Since(d.Since)), "you", "-", "(declared)"))
		}
	}
	if folded := len(m.all) - len(m.state.terminals); folded > 0 {
		lines = append(lines, fmt.Sprintf("  %d exited (e shows them)", folded))
	}
	if len(lines) == 0 {
		lines = []string{"  no terminals; n starts a shell, or: tether run -- CMD"}
	}
	return lines
}

// row returns a line of the list. The columns have fixed widths, so that they do not move
// when their text changes.
func row(name, placed, state, since, owner, lent, command string) string {
	return strings.Join([]string{display.Fit(name, 24) + placed, display.Fit(state, 14), display.Fit(since, 5), display.Fit(owner, 8), display.Fit(lent, 16), command}, " ")
}

// placed returns a checkout as a column, "" unless terminals are in several.
func (m *model) placed(checkout string) string {
	if !display.SeveralCheckouts(m.all) {
		return ""
	}
	return " " + display.Fit(checkout, 24)
}

// rule returns the line above the preview.
func (m *model) rule() string {
	title := ""
	if i := m.index(); i >= 0 {
		t := m.state.terminals[i]
		title = fmt.Sprintf(" %s %s, %dx%d ", t.ID, display.Printable(t.Title, 40), t.Cols, t.Rows)
		for _, l := range t.Loans {
			if claim := display.Claim(l.Watchers); claim != "" {
				title += display.Printable(l.Host, 20) + ": " + claim + " "
			}
			for _, p := range l.Ports {
				title += display.Printable(l.Host, 20) + ": " + display.PortInFull(p) + " "
			}
		}
	}
	return "──" + title + strings.Repeat("─", max(m.cols-ansi.StringWidth(title)-2, 0))
}

// footer returns the last line: a question, or the keys.
func (m *model) footer() string {
	switch m.asking {
	case askKill:
		return m.bold("Kill " + m.chosenName() + " and its processes? y/N")
	case askFilter:
		return m.bold("/"+display.Printable(m.filter, 0)) + "▏ Enter keep · Esc clear"
	case askNames:
		return m.bold("Who may watch "+m.chosenName()+" from its beginning? "+display.Printable(m.words, 0)) + "▏ NAME group:NAME agent:NAME everyone, -NAME for no more"
	case askPorts:
		return m.bold("Who watches "+m.chosenName()+" may fetch from port "+display.Printable(m.words, 0)) + "▏ 3000, auto; -3000 closes; a server acts on GET, too, and serves source"
	case askApprove:
		if _, whole := m.question(); !whole {
			return m.bold("n deny · Esc later; to approve, enlarge the window, or run: tether approvals " + m.about)
		}
		return m.bold("y approve · n deny · Esc later")
	}
	if m.filter != "" {
		return "/" + display.Printable(m.filter, 0) + "  Esc clear  ? help  q quit"
	}
	keys, last := "", "? help  q quit"
	for _, one := range []string{"↑↓ select", "enter attach", "n shell", "/ filter", "l lend", "u unlend", "x kill", "a answer", "t to", "o port"} {
		if ansi.StringWidth(keys+one+"  "+last) > m.cols {
			break
		}
		keys += one + "  "
	}
	return keys + last
}

func (m *model) bold(s string) string    { return m.styled("1", s) }
func (m *model) reverse(s string) string { return m.styled("7", s) }

func (m *model) styled(sgr, s string) string {
	if !m.colours {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}
