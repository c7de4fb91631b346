package ahp

import "encoding/json"

// RootState is the state of RootURI.
type RootState struct {
	Agents         []AgentInfo    `json:"agents"` // required, may be empty
	ActiveSessions *int64         `json:"activeSessions,omitempty"`
	Terminals      []TerminalInfo `json:"terminals,omitempty"` // nil = the host has said nothing
	Config         *RootConfig    `json:"config,omitempty"`
	Meta           Meta           `json:"_meta,omitempty"`
}

// AgentInfo is an agent backend of the host. Fields that only sessions need are kept as
// received.
type AgentInfo struct {
	Provider           string            `json:"provider"`
	DisplayName        string            `json:"displayName"`
	Description        string            `json:"description"`
	Models             []json.RawMessage `json:"models"` // required, may be empty
	ProtectedResources json.RawMessage   `json:"protectedResources,omitempty"`
	Customizations     json.RawMessage   `json:"customizations,omitempty"`
	Capabilities       json.RawMessage   `json:"capabilities,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (a AgentInfo) MarshalJSON() ([]byte, error) {
	type fields AgentInfo
	a.Models = list(a.Models)
	return marshal(fields(a)), nil
}

// RootConfig is the host's configuration with the JSON schema of its values.
type RootConfig struct {
	Schema json.RawMessage            `json:"schema"`
	Values map[string]json.RawMessage `json:"values"`
}

type rootFields RootState

// rootWire writes an empty catalogue as [] and leaves an unknown one out.
type rootWire struct {
	rootFields
	Terminals *[]infoWire `json:"terminals,omitempty"`
}

// MarshalFor encodes the state in the shape of a negotiated protocol version.
func (s RootState) MarshalFor(version string) []byte {
	w := rootWire{rootFields: rootFields(s)}
	w.Agents = list(s.Agents)
	if s.Terminals != nil {
		infos := infoWires(s.Terminals, version)
		w.Terminals = &infos
	}
	return marshal(w)
}

// MarshalJSON implements json.Marshaler in the newest shape.
func (s RootState) MarshalJSON() ([]byte, error) { return s.MarshalFor(Versions()[0]), nil }

// UnmarshalJSON reads either shape.
func (s *RootState) UnmarshalJSON(raw []byte) error {
	var w rootFields
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	*s = RootState(w)
	s.Agents = list(s.Agents)
	return nil
}

func infoWires(terminals []TerminalInfo, version string) []infoWire {
	out := make([]infoWire, 0, len(terminals))
	for _, t := range terminals {
		out = append(out, t.wire(version))
	}
	return out
}
