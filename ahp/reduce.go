package ahp

import (
	"maps"
	"slices"
)

// ReduceRoot returns the root state after an accepted action. It changes nothing
// reachable from s.
func ReduceRoot(s RootState, a Action) RootState {
	switch a := a.(type) {
	case RootAgentsChanged:
		s.Agents = list(a.Agents)
	case RootActiveSessionsChanged:
		s.ActiveSessions = &a.ActiveSessions
	case RootTerminalsChanged:
		s.Terminals = list(a.Terminals)
	case RootConfigChanged:
		s.Config = reduceConfig(s.Config, a)
	}
	return s
}

// reduceConfig changes nothing if the host shows no configuration.
func reduceConfig(c *RootConfig, a RootConfigChanged) *RootConfig {
	if c == nil {
		return nil
	}
	next := RootConfig{Schema: c.Schema, Values: maps.Clone(c.Values)}
	if a.Replace || next.Values == nil {
		next.Values = maps.Clone(a.Config)
	} else {
		maps.Copy(next.Values, a.Config)
	}
	return &next
}

// ReduceTerminal returns a terminal's state after an accepted action; refused envelopes
// must not get here. It changes nothing reachable from s, so appending costs a copy of
// the tail part: a caller that follows much output keeps the text elsewhere.
func ReduceTerminal(s TerminalState, a Action) TerminalState {
	switch a := a.(type) {
	case TerminalData:
		s = reduceOutput(s, a.Data, a.Screen)
	case TerminalOutput:
		s = reduceOutput(s, a.Data, a.Screen)
	case TerminalResized:
		if s.Meta.Screen != nil {
			s.Meta.Screen = s.Meta.Screen.Resized(length(s.Content), a.Cols, a.Rows)
		}
		s.Cols, s.Rows = a.Cols, a.Rows
	case TerminalClaimed:
		s.Claim = a.Claim
	case TerminalTitleChanged:
		s.Title = a.Title
	case TerminalCwdChanged:
		s.Cwd = a.Cwd
	case TerminalExited:
		s.Lifecycle = Exited(a.ExitCode)
	case TerminalCleared:
		s.Content, s.Meta.Screen = []ContentPart{}, nil
	case TerminalCommandDetectionAvailable:
		s.SupportsCommandDetection = true
	case TerminalCommandExecuted:
		s.SupportsCommandDetection = true
		s.Content = append(slices.Clip(s.Content), ContentPart{Type: PartCommand, CommandID: a.CommandID,
			CommandLine: a.CommandLine, Timestamp: a.Timestamp, Meta: a.Meta})
	case TerminalCommandFinished:
		s.Content = finishCommand(s.Content, a)
	}
	return s
}

func reduceOutput(s TerminalState, data string, screen *Screen) TerminalState {
	if data != "" || screen == nil {
		s.Content = appendData(s.Content, data)
	}
	if screen != nil {
		s.Meta.Screen = screen.At(length(s.Content))
	}
	return s
}

// length returns the length of the whole text, in bytes.
func length(parts []ContentPart) (n int64) {
	for _, p := range parts {
		n += int64(len(p.Text()))
	}
	return n
}

func appendData(parts []ContentPart, data string) []ContentPart {
	last := len(parts) - 1
	switch {
	case last >= 0 && parts[last].Type == PartCommand && !parts[last].IsComplete:
		parts = slices.Clone(parts)
		parts[last].Output += data
	case last >= 0 && parts[last].Type == PartUnclassified:
		parts = slices.Clone(parts)
		parts[last].Value += data
	default:
		parts = append(slices.Clip(parts), ContentPart{Type: PartUnclassified, Value: data})
	}
	return parts
}

func finishCommand(parts []ContentPart, a TerminalCommandFinished) []ContentPart {
	cloned := false
	for i, p := range parts {
		if p.Type != PartCommand || p.CommandID != a.CommandID {
			continue
		}
		if !cloned {
			parts, cloned = slices.Clone(parts), true
		}
		parts[i].IsComplete, parts[i].ExitCode, parts[i].DurationMs = true, a.ExitCode, a.DurationMs
	}
	return parts
}
