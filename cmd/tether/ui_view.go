package main

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// What the screen has beside the list and the preview: the first line, the head of the list, the line between, and the last two.
const uiFixed = 5

// View implements tea.Model.
func (m uiModel) View() tea.View {
	v := tea.NewView(m.picture())
	v.AltScreen = true
	return v
}

// picture is the screen's text. Lines that are too long are cut by what shows them.
func (m *uiModel) picture() string {
	switch {
	case m.cols == 0:
		return ""
	case m.state.err != nil:
		return "tether: " + printable(m.state.err.Error(), 300) + "\n\nq  quit\n"
	case !m.known:
		return "asking the daemon…\n"
	}
	room := max(m.rows-uiFixed, 2)
	list := m.listLines()
	shown := min(len(list), max(room/2, 1))
	from := min(max(m.index()-shown/2, 0), max(len(list)-shown, 0))
	lines := append([]string{m.summary(), m.bold("  " + uiColumns("NAME", "STATE", "SINCE", "LENT TO", "COMMAND"))}, list[from:from+shown]...)
	if hidden := len(list) - shown; hidden > 0 {
		lines[1] += fmt.Sprintf("  (%d more)", hidden)
	}
	lines = append(lines, m.rule())
	preview := m.state.preview
	if m.state.of != m.chosen {
		preview = nil
	}
	if left := room - shown; len(preview) > left {
		preview = preview[len(preview)-left:]
	}
	lines = append(lines, preview...)
	for len(lines) < m.rows-2 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, printable(m.said, m.cols), m.footer()), "\n")
}

// summary is the first line.
func (m *uiModel) summary() string {
	running := 0
	for _, t := range m.state.terminals {
		if t.Exit == nil {
			running++
		}
	}
	parts := []string{fmt.Sprintf("tether  %d running", running)}
	for _, h := range m.state.hosts {
		parts = append(parts, printable(h.Name, 20)+" "+h.State)
	}
	if len(m.state.hosts) == 0 {
		parts = append(parts, "no host is paired")
	}
	if m.state.degraded > 0 {
		parts = append(parts, fmt.Sprintf("%d troubles: tether status", m.state.degraded))
	}
	if n := len(m.state.questions); n > 0 {
		parts = append(parts, fmt.Sprintf("%d questions of agents: a", n))
	}
	return strings.Join(parts, " · ")
}

// listLines are the terminals, then those that are declared and do not run.
func (m *uiModel) listLines() []string {
	var lines []string
	for _, t := range m.state.terminals {
		state, since := "running", t.Started
		switch {
		case t.Exit != nil:
			state, since = exitText(*t.Exit), t.Exit.At
		case !t.Visible:
			state = "background"
		}
		line := uiColumns(printable(nameOf(t), 24), state, ago(time.Since(since)), lentText(t), printable(shellLine(t.Command), 60)+urlText(t.Listening))
		if t.ID == m.chosen {
			line = m.reverse("> " + line)
		} else {
			line = "  " + line
		}
		lines = append(lines, line)
	}
	for _, d := range m.state.declared {
		if d.State != "running" {
			lines = append(lines, "  "+uiColumns(d.Name, declaredText(d), ago(time.Since(d.Since)), "-", "(declared)"))
		}
	}
	if len(lines) == 0 {
		lines = []string{"  no terminals; start one with: tether run -- CMD"}
	}
	return lines
}

func uiColumns(name, state, since, lent, command string) string {
	return fmt.Sprintf("%-24s %-16s %-6s %-16s %s", name, state, since, lent, command)
}

// rule is the line above the preview.
func (m *uiModel) rule() string {
	title := ""
	if i := m.index(); i >= 0 {
		t := m.state.terminals[i]
		title = fmt.Sprintf(" %s %s, %s, %dx%d ", t.ID, printable(t.Title, 40), t.Owner, t.Cols, t.Rows)
	}
	return "──" + title + strings.Repeat("─", max(m.cols-len([]rune(title))-2, 0))
}

// footer is the last line: a question, or the keys.
func (m *uiModel) footer() string {
	switch m.asking {
	case askKill:
		return m.bold("kill " + m.about + " with everything in it? y/n")
	case askApprove:
		for _, q := range m.state.questions {
			if q.ID == m.about {
				return m.bold(fmt.Sprintf("%s wants to run %s in %s: y approve, n deny, other keys later", printable(q.Actor, 40), printable(approvalLine(q), 120), printable(q.Cwd, 40)))
			}
		}
	}
	return "↑↓ choose  enter attach  l lend  u unlend  p promote  x kill  a answer  q quit"
}

func (m *uiModel) bold(s string) string    { return m.styled("1", s) }
func (m *uiModel) reverse(s string) string { return m.styled("7", s) }

func (m *uiModel) styled(sgr, s string) string {
	if !m.colours {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}
