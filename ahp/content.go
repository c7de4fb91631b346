package ahp

import "encoding/json"

// Types of a ContentPart.
const (
	PartUnclassified = "unclassified"
	PartCommand      = "command"
)

// ContentPart is a stretch of a terminal's output. Which fields count depends on Type.
type ContentPart struct {
	Type string

	Value string // PartUnclassified: the text

	CommandID   string   // PartCommand, like all below
	CommandLine string   // the text submitted to the shell
	Output      string   // the text between start and end
	Timestamp   int64    // start, Unix milliseconds, by the host's clock
	IsComplete  bool     // false while it runs
	ExitCode    *int64   // nil = unknown
	DurationMs  *float64 // milliseconds; nil = unknown
	Meta        *CommandMeta

	Raw json.RawMessage // a part of another type, verbatim
}

// Text returns the part's piece of the stream.
func (p ContentPart) Text() string {
	if p.Type == PartCommand {
		return p.Output
	}
	return p.Value
}

type unclassifiedWire struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type commandWire struct {
	Type        string   `json:"type"`
	CommandID   string   `json:"commandId"`
	CommandLine string   `json:"commandLine"`
	Output      string   `json:"output"`
	Timestamp   int64    `json:"timestamp"`
	IsComplete  bool     `json:"isComplete"`
	ExitCode    *int64   `json:"exitCode,omitempty"`
	DurationMs  *float64 `json:"durationMs,omitempty"`

	Meta *CommandMeta `json:"_meta,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p ContentPart) MarshalJSON() ([]byte, error) {
	switch {
	case p.Type == PartCommand:
		return marshal(commandWire{p.Type, p.CommandID, p.CommandLine, p.Output, p.Timestamp, p.IsComplete, p.ExitCode,
			finite(p.DurationMs), p.Meta}), nil
	case p.Type != PartUnclassified && p.Raw != nil:
		return p.Raw, nil
	}
	return marshal(unclassifiedWire{PartUnclassified, p.Value}), nil
}

// UnmarshalJSON keeps parts of unknown types verbatim.
func (p *ContentPart) UnmarshalJSON(raw []byte) error {
	var w struct {
		commandWire
		Value string `json:"value"`
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	switch head.Type {
	case PartUnclassified, PartCommand:
		if err := json.Unmarshal(raw, &w); err != nil {
			return err
		}
		*p = ContentPart{Type: w.Type, Value: w.Value, CommandID: w.CommandID, CommandLine: w.CommandLine, Output: w.Output,
			Timestamp: w.Timestamp, IsComplete: w.IsComplete, ExitCode: w.ExitCode, DurationMs: w.DurationMs, Meta: w.Meta}
	default:
		*p = ContentPart{Type: head.Type, Raw: append(json.RawMessage(nil), raw...)}
	}
	return nil
}
