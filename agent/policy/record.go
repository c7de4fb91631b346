package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/clip"
	"tether/internal/jsonspan"
)

// Record is an Event in the form of the audit log, besides the fields of the chain
// (agent/audit).
type Record struct {
	Time     time.Time `json:"time"`
	Event    EventType `json:"event"`
	Actor    string    `json:"actor,omitempty"` // user, agent:NAME, host:NAME
	Who      string    `json:"who,omitempty"`   // an agent at a host, by the name that the host gives it
	Door     string    `json:"door,omitempty"`
	Terminal string    `json:"terminal,omitempty"`
	Host     string    `json:"host,omitempty"`
	Argv     []string  `json:"argv,omitempty"`
	Line     string    `json:"line,omitempty"`
	Cwd      string    `json:"cwd,omitempty"`
	// ArgvBytes has, by their index, the words of Argv that are not UTF-8, which Argv can
	// only show; CwdBytes is such a Cwd.
	ArgvBytes map[int][]byte `json:"argv_bytes,omitempty"`
	CwdBytes  []byte         `json:"cwd_bytes,omitempty"`
	EnvNames  []string       `json:"env,omitempty"` // names, never values
	Effect    string         `json:"effect,omitempty"`
	Rule      string         `json:"rule,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Detail    string         `json:"detail,omitempty"`
	// Count and Oldest are set only in events that the log itself writes: "lost" and
	// "rotated".
	Count  int64 `json:"count,omitempty"`
	Oldest int64 `json:"oldest,omitempty"`
}

// record returns the event in the form in which the log keeps it.
func (ev Event) record() Record {
	if ev.Time.IsZero() {
		ev.Time = time.Now()
	}
	r := Record{
		Time: ev.Time.UTC(), Event: ev.Type, Door: ev.Door, Terminal: string(ev.Terminal), Host: ev.Host,
		Line: jsonspan.Show(redacted(ev.Line)), EnvNames: shortened(ev.EnvNames, func(_ int, name string) string { return jsonspan.Show(name) }),
		Rule: ev.Decision.Rule, Reason: jsonspan.Show(redacted(ev.Decision.Reason)), Detail: jsonspan.Show(redacted(ev.Detail)),
	}
	r.Argv, r.ArgvBytes = jsonspan.Pack(redactedWords(ev.Argv))
	r.Cwd, r.CwdBytes = jsonspan.PackOne(clip.Marked(ev.Cwd, maxAuditText))
	if ev.Actor != (term.Actor{}) {
		r.Actor, r.Who = subject(ev.Actor), who(ev.Actor, ev.Named)
	}
	if ev.Decision.Effect != 0 {
		r.Effect = ev.Decision.Effect.String()
	}
	return r
}

// Summary returns a text about the request for a notification: the requester and the
// command, without secrets (Options.Mask, and text that looks like a credential) and
// without characters that a terminal or a desktop obeys. The text has about 300 bytes at
// most.
func (e *Engine) Summary(r Request) string {
	mask := func(s string) string { // before the text is cut: half a secret would not be recognised
		if s = clip.Marked(s, maxLooked); e.mask != nil {
			s = e.mask(s, nil)
		}
		return s
	}
	text := jsonspan.Show(redacted(mask(r.Line)))
	if r.Line == "" {
		words := make([]string, min(len(r.Argv), maxAuditWords))
		for i := range words {
			words[i] = mask(r.Argv[i])
		}
		words = redactedWords(words)
		for i, word := range words {
			words[i] = jsonspan.Show(word)
		}
		text = strings.Join(words, " ")
	}
	return clip.Marked(oneLine(mask(cmp.Or(r.Who(), r.Actor.String()))), 160) + r.asks() + brief(oneLine(text))
}

// asks is the part of Summary between the requester and the text.
func (r Request) asks() string {
	if r.Setting {
		return "'s configuration has changed: "
	}
	return " asks to run: "
}

// Plain reports whether Summary and the directory show everything that decides which code
// the request of q runs, so that the person may approve by them: no variables, no
// scripts, nothing masked or cut, and no word that could be taken for two.
func (e *Engine) Plain(q Question) bool {
	r := q.Request
	text := r.Line
	if text == "" {
		text = strings.Join(r.Argv, " ")
		if slices.ContainsFunc(r.Argv, func(word string) bool { return len(strings.Fields(word)) != 1 }) {
			return false
		}
	}
	return len(r.Env) == 0 && len(q.Scripts) == 0 && r.Shell == "" && r.Cwd == brief(oneLine(r.Cwd)) && strings.HasSuffix(e.Summary(r), r.asks()+text)
}

// oneLine returns s without line breaks, control characters and invisible characters.
func oneLine(s string) string { return redact.Clean(strings.Join(strings.Fields(s), " ")) }

// event returns the audit log's event of the given type for a request.
func (r Request) event(t EventType, d Decision) Event {
	return Event{Type: t, Actor: r.Actor, Named: r.Named, Door: r.Door, Argv: r.Argv, Line: r.Line, Cwd: r.Cwd, EnvNames: EnvNames(r.Env), Decision: d}
}
