package uplink

import (
	"context"
	"fmt"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/ahp"
	"tether/vocab"
)

// actionFor translates a mark for a host that speaks that version of the protocol. It
// returns nil for marks that hosts are not told, and for titles, see publisher.tellTitle.
func actionFor(m *output.Mark, version string, commandActions bool) ahp.Action {
	switch m.Kind {
	case output.MarkCwd:
		if cwd := ahp.FileURI(m.Text); cwd != "" {
			return ahp.TerminalCwdChanged{Cwd: cwd}
		}
		return nil
	case output.MarkResized:
		return resized(m.Size)
	case output.MarkCleared:
		return ahp.TerminalCleared{}
	case output.MarkExited:
		exited := ahp.TerminalExited{Meta: ahp.AddTime(nil, ahp.ExitedKey, m.Exit.At)}
		if m.Exit.Reason != vocab.ExitLost || !ahp.HasLifecycle(version) { // an older protocol cannot say that the code is unknown
			exited.ExitCode = new(int64(m.Exit.Code))
		}
		return exited
	}
	if !commandActions {
		return nil
	}
	switch m.Kind {
	case output.MarkDetection:
		return ahp.TerminalCommandDetectionAvailable{}
	case output.MarkCommandExecuted:
		return executed(m.Command)
	case output.MarkCommandFinished:
		return finished(m.Command)
	}
	return nil
}

func resized(s term.Size) ahp.Action {
	return ahp.TerminalResized{Cols: int64(s.Cols), Rows: int64(s.Rows)}
}

func executed(c vocab.Command) ahp.Action {
	return ahp.TerminalCommandExecuted{CommandID: commandID(c.N), CommandLine: c.Text(), Timestamp: c.Started.UnixMilli(), Meta: ahp.NewCommandMeta(c.Verified)}
}

func finished(c vocab.Command) ahp.Action {
	f := ahp.TerminalCommandFinished{CommandID: commandID(c.N), DurationMs: c.DurationMs}
	if c.Exit != nil {
		f.ExitCode = new(int64(*c.Exit))
	}
	return f
}

// commandID names a command within its terminal, as VS Code's host does.
func commandID(n int) string { return fmt.Sprintf("cmd-%d", n) }

// titlePause is the least time between two titles of a terminal that are sent to a host.
// Some programs count in their title, thousands of times in a second; with the pause,
// that costs host and observers four small actions a second. The last title always
// arrives, and does so before the exit.
const titlePause = 250 * time.Millisecond

// tellTitle sends the host the terminal's present title if that has changed and
// titlePause is over. With last it does not wait for the pause.
func (p *publisher) tellTitle(ctx context.Context, last bool) error {
	if !p.retitled || !last && p.titleLeft() > 0 {
		return nil
	}
	p.retitled = false
	title := p.info().Title
	if title == p.title {
		return nil
	}
	p.title, p.titled = title, time.Now()
	return p.dispatch(ctx, ahp.TerminalTitleChanged{Title: title})
}

// titleLeft returns how long the next title has to wait.
func (p *publisher) titleLeft() time.Duration { return titlePause - time.Since(p.titled) }

// Texts that hosts get besides the output are redacted, too: titles, names and
// directories often contain typed text, and command lines always do.

// info returns the terminal's info in the host's view.
func (p *publisher) info() term.Info { return outward(p.le.h) }

func outward(h term.Handle) term.Info {
	info, rules := h.Info(), h.Outward()
	info.HideDirectory(rules)
	info.Title, info.Cwd = rules.Title(info.Title), rules.Redact(info.Cwd)
	return info
}

// shown returns a mark, not a title, as the host may see it.
func shown(h term.Handle, m *output.Mark) *output.Mark {
	out, rules := *m, h.Outward()
	switch m.Kind {
	case output.MarkCwd:
		out.Text = rules.Redact(m.Text)
	case output.MarkCommandExecuted, output.MarkCommandFinished:
		out.Command = shownCommand(h, m.Command)
	}
	return &out
}

func shownCommand(h term.Handle, c vocab.Command) vocab.Command {
	c.Show(h.Outward().Redact)
	return c
}
