package policy

import (
	"time"

	"tether/agent/term"
	"tether/internal/clip"
)

// Record is an Event as it stands in the audit log, beside the fields of the
// chain (agent/audit).
type Record struct {
	Time     time.Time `json:"time"`
	Event    EventType `json:"event"`
	Actor    string    `json:"actor,omitempty"` // user, agent:NAME, host:NAME
	Door     string    `json:"door,omitempty"`
	Terminal string    `json:"terminal,omitempty"`
	Host     string    `json:"host,omitempty"`
	Argv     []string  `json:"argv,omitempty"`
	Line     string    `json:"line,omitempty"`
	Cwd      string    `json:"cwd,omitempty"`
	EnvNames []string  `json:"env,omitempty"` // names, never values
	Effect   string    `json:"effect,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	// Count and Oldest are of the events that the log itself writes: "lost"
	// and "rotated".
	Count  int64 `json:"count,omitempty"`
	Oldest int64 `json:"oldest,omitempty"`
}

// record is what is written of the event.
func (ev Event) record() Record {
	if ev.Time.IsZero() {
		ev.Time = time.Now()
	}
	r := Record{
		Time: ev.Time.UTC(), Event: ev.Type, Door: ev.Door, Terminal: string(ev.Terminal), Host: ev.Host,
		Argv: redactedWords(ev.Argv), Line: redacted(ev.Line), Cwd: clip.Marked(ev.Cwd, maxAuditText), EnvNames: shortened(ev.EnvNames),
		Rule: ev.Decision.Rule, Reason: redacted(ev.Decision.Reason), Detail: redacted(ev.Detail),
	}
	if ev.Actor != (term.Actor{}) {
		r.Actor = subject(ev.Actor)
	}
	if ev.Decision.Effect != 0 {
		r.Effect = ev.Decision.Effect.String()
	}
	return r
}

// event is what the log says of a request.
func (r Request) event(t EventType, d Decision) Event {
	return Event{Type: t, Actor: r.Actor, Door: r.Door, Argv: r.Argv, Line: r.Line, Cwd: r.Cwd, EnvNames: r.EnvNames, Decision: d}
}
