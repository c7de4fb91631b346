package uplink

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"tether/agent/term"
	"tether/ahp"
)

// actionFor translates a mark; nil for the ones a host is not told, and for
// titles, see publisher.tellTitle.
func actionFor(m *term.Mark, commandActions bool) ahp.Action {
	switch m.Kind {
	case term.MarkCwd:
		if cwd := fileURI(m.Text); cwd != "" {
			return ahp.TerminalCwdChanged{Cwd: cwd}
		}
		return nil
	case term.MarkResized:
		return resized(m.Size)
	case term.MarkExited:
		if m.Exit.Reason == term.ReasonLost {
			return ahp.TerminalExited{} // nobody knows
		}
		code := int64(m.Exit.Code)
		return ahp.TerminalExited{ExitCode: &code}
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

// fileURI returns the file URI of an absolute path of this machine, "" if it
// is longer than hosts take: escaping may make it three times the path.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	uri := (&url.URL{Scheme: "file", Path: path}).String()
	if len(uri) > ahp.MaxCwd {
		return ""
	}
	return uri
}
