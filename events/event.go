package events

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"tether/agenttools"
	"tether/internal/clip"
	"tether/screen"
	"tether/vocab"
)

// Event is one occurrence, in MCP's words.
type Event struct {
	ID   string         `json:"eventId"` // visible ASCII without a dot, at most 128 bytes; the same whenever the same event is sent
	Name string         `json:"name"`
	At   time.Time      `json:"timestamp"`
	Data map[string]any `json:"data"`
	// Cursor is the position after the event. Events of one answer of Poll have none.
	Cursor *string        `json:"cursor,omitempty"`
	Meta   map[string]any `json:"_meta,omitempty"`
}

// MetaUntrusted marks events that contain text of programs.
const MetaUntrusted = "tether/untrusted"

// Reason says what is wrong with a request, or why a subscription has ended.
type Reason string

// The reasons, in the words of the protocol's errors.
const (
	InvalidParams     Reason = "InvalidParams"
	NotFound          Reason = "NotFound"
	Forbidden         Reason = "Forbidden"
	ResourceExhausted Reason = "ResourceExhausted"
	Unsupported       Reason = "Unsupported"
	// CallbackEndpoint: a webhook's receiver was not reached, or has not shown that it
	// wants events.
	CallbackEndpoint Reason = "CallbackEndpointError"
)

// Error is the answer to a request that cannot be served.
type Error struct {
	Reason Reason
	Text   string // the fault and the remedy, for people and models
	Data   map[string]any
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

func invalid(field, format string, args ...any) *Error {
	why := fmt.Sprintf(format, args...)
	return &Error{Reason: InvalidParams, Text: field + " " + why, Data: map[string]any{"field": field, "reason": why}}
}

// withdrawn returns the answer about a terminal that does not exist or that the principal
// may not see. It does not reveal which.
func withdrawn() *Error {
	return &Error{Reason: Forbidden, Text: "no such terminal, or none that you may see; list_terminals lists them", Data: map[string]any{"reason": "withdrawn"}}
}

// match is one event in a terminal's log.
type match struct {
	start, end int64 // offsets
	line       string
	command    *vocab.Command
	exit       *vocab.Exit
	after      place
	at         time.Time
}

// group has matches that are reported as one event.
type group struct {
	first, last match
	n           int
}

func (g *group) add(m match) {
	if g.n == 0 {
		g.first = m
	}
	g.last = m
	g.n++
}

// event returns the event for a group.
func (s *Spec) event(g *group, i agenttools.Info) Event {
	data := about(i)
	data["since"] = g.first.start
	if g.n > 1 {
		data["count"] = g.n
	}
	switch {
	case g.first.command != nil:
		commandData(data, g)
	case g.first.exit != nil:
		exitData(data, g.first)
	default:
		data["line"], data["count"] = clip.Text(g.first.line, maxShow), g.n
		data["offset"], data["lastOffset"] = g.first.start, g.last.start
		if g.n > 1 {
			data["last"] = clip.Text(g.last.line, maxShow)
		}
	}
	id := fmt.Sprintf("%c-%s-%d-%d-%s", s.kind.letter, i.ID, g.first.start, g.last.end, s.hashText())
	return Event{ID: id, Name: s.kind.Name, At: g.last.at, Data: data, Meta: map[string]any{MetaUntrusted: true}}
}

func commandData(data map[string]any, g *group) {
	c := g.first.command
	data["start"], data["end"], data["durationMs"], data["verified"] = c.Start, c.End, c.Ms(), c.Verified
	if line := c.Text(); line != "" {
		data["line"] = clip.Text(screen.Clean(line), maxShow)
	}
	if c.Exit != nil {
		data["exitCode"] = *c.Exit
	}
	if last := g.last.command; g.n > 1 {
		data["last"] = clip.Text(screen.Clean(last.Text()), maxShow)
		if last.Exit != nil {
			data["lastExitCode"] = *last.Exit
		}
	}
}

func exitData(data map[string]any, m match) {
	data["exitCode"], data["reason"] = m.exit.Code, m.exit.Reason
	if m.exit.Signal != "" {
		data["signal"] = m.exit.Signal
	}
	if m.line != "" {
		data["lastLine"] = clip.Text(m.line, maxShow)
	}
}

// about returns the data that all events about a terminal share.
func about(i agenttools.Info) map[string]any {
	data := map[string]any{"terminalId": i.ID, "name": clip.Text(screen.Clean(i.Name), maxShow), "since": i.End}
	if i.Machine != "" {
		data["machine"] = screen.Clean(i.Machine)
	}
	return data
}

// hashText identifies a subscription in ids and cursors.
func (s *Spec) hashText() string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], s.hash)
	return hex.EncodeToString(b[:])
}
