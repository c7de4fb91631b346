package ahp

import "encoding/json"

// RootAgentsChanged replaces RootState.Agents.
type RootAgentsChanged struct {
	Agents []AgentInfo `json:"agents"`
}

// RootActiveSessionsChanged replaces RootState.ActiveSessions.
type RootActiveSessionsChanged struct {
	ActiveSessions int64 `json:"activeSessions"`
}

// RootTerminalsChanged replaces RootState.Terminals as a whole.
type RootTerminalsChanged struct {
	Terminals []TerminalInfo `json:"terminals"`
}

// RootConfigChanged merges Config into the values of RootState.Config or, with Replace,
// replaces them. A client may dispatch it; VS Code does so right after connecting.
type RootConfigChanged struct {
	Config  map[string]json.RawMessage `json:"config"`
	Replace bool                       `json:"replace,omitempty"`
}

// Type implements Action.
func (RootAgentsChanged) Type() string { return ActionRootAgentsChanged }

// Type implements Action.
func (RootActiveSessionsChanged) Type() string { return ActionRootActiveSessionsChanged }

// Type implements Action.
func (RootTerminalsChanged) Type() string { return ActionRootTerminalsChanged }

// Type implements Action.
func (RootConfigChanged) Type() string { return ActionRootConfigChanged }

func (a RootAgentsChanged) forVersion(string) any { return RootAgentsChanged{list(a.Agents)} }

func (a RootTerminalsChanged) forVersion(version string) any {
	return struct {
		Terminals []infoWire `json:"terminals"`
	}{infoWires(a.Terminals, version)}
}

func (a RootConfigChanged) forVersion(string) any {
	if a.Config == nil {
		a.Config = map[string]json.RawMessage{}
	}
	return a
}
