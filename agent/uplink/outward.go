package uplink

import "tether/agent/term"

// What hosts are told beside the output goes through the same rules: titles,
// names and directories often hold what was typed, and command lines always do.

// info is what the host may know of the terminal.
func (p *publisher) info() term.Info {
	info, rules := p.le.h.Info(), p.le.h.Outward()
	info.Title, info.Cwd = rules.Title(info.Title), rules.Redact(info.Cwd)
	return info
}

// shown is a mark other than a title as the host may see it.
func shown(h term.Handle, m *term.Mark) *term.Mark {
	out, rules := *m, h.Outward()
	switch m.Kind {
	case term.MarkCwd:
		out.Text = rules.Redact(m.Text)
	case term.MarkCommandExecuted, term.MarkCommandFinished:
		out.Command = shownCommand(h, m.Command)
	}
	return &out
}

func shownCommand(h term.Handle, c term.Command) term.Command {
	c.Line = h.Outward().Redact(c.Line)
	return c
}
