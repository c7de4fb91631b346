package uplink

import (
	"fmt"

	"tether/agent/term"
	"tether/ahp"
)

// actionFor translates a mark for a host that speaks the version; nil for the ones a host is not told, and for
// titles, see publisher.tellTitle.
func actionFor(m *term.Mark, version string, commandActions bool) ahp.Action {
	switch m.Kind {
	case term.MarkCwd:
		if cwd := ahp.FileURI(m.Text); cwd != "" {
			return ahp.TerminalCwdChanged{Cwd: cwd}
		}
		return nil
	case term.MarkResized:
		return resized(m.Size)
	case term.MarkExited:
		exited := ahp.TerminalExited{Meta: ahp.AddTime(nil, ahp.ExitedKey, m.Exit.At)}
		if m.Exit.Reason != term.ReasonLost || !ahp.HasLifecycle(version) { // else nobody knows the code
			exited.ExitCode = new(int64(m.Exit.Code))
		}
		return exited
	}
	if !commandActions {
		return nil
	}
	switch m.Kind {
	case term.MarkDetection:
		return ahp.TerminalCommandDetectionAvailable{}
	case term.MarkCommandExecuted:
		return executed(m.Command)
	case term.MarkCommandFinished:
		return finished(m.Command)
	}
	return nil
}

func resized(s term.Size) ahp.Action {
	return ahp.TerminalResized{Cols: int64(s.Cols), Rows: int64(s.Rows)}
}

func executed(c term.Command) ahp.Action {
	return ahp.TerminalCommandExecuted{CommandID: commandID(c.N), CommandLine: c.Line, Timestamp: c.Started.UnixMilli()}
}

func finished(c term.Command) ahp.Action {
	f := ahp.TerminalCommandFinished{CommandID: commandID(c.N)}
	if c.Done {
		ms := float64(c.Duration.Microseconds()) / 1000
		f.DurationMs = &ms
	}
	if c.Exit != nil {
		code := int64(*c.Exit)
		f.ExitCode = &code
	}
	return f
}

// commandID names a command within its terminal, as VS Code's host does.
func commandID(n int) string { return fmt.Sprintf("cmd-%d", n) }
