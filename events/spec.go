package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"tether/agenttools"
	"tether/internal/jsonspan"
	"tether/vocab"
)

// Request asks for events.
type Request struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object, or nothing
	// Cursor is the position after which events are wanted; nil: from now on.
	Cursor *string `json:"cursor,omitempty"`
	// Only, if it is not empty, has the ids of the terminals whose events are wanted. No
	// client can set it: one that may not see a terminal would learn nothing of that.
	Only []string `json:"-"`
	// Oldest asks for all events in the log, instead of a Cursor.
	Oldest bool `json:"-"`
	// MaxAge leaves out older events. It applies only to kinds of the moment, because the
	// time when a line was printed is not known.
	MaxAge *time.Duration `json:"-"`
	// MaxEvents bounds the answer of Poll; 0 means 50.
	MaxEvents int `json:"-"`
}

// Spec is the content of a subscription.
type Spec struct {
	kind *Kind
	hash uint32 // of kind and arguments
	arguments
	pattern *pattern
	// of is the id of the only terminal; "" means all.
	of   string
	only []string // as in Request
}

// arguments has the arguments of all kinds; a kind's schema lists those that it accepts.
type arguments struct {
	TerminalID    string  `json:"terminalId"`
	Machine       string  `json:"machine"`
	Pattern       *string `json:"pattern"`
	FailedOnly    bool    `json:"failedOnly"`
	ExitCode      *int    `json:"exitCode"`
	MinDurationMs int64   `json:"minDurationMs"`
	IdleMs        *int64  `json:"idleMs"`
	Port          *int    `json:"port"`
	Severity      string  `json:"severity"`
	To            string  `json:"to,omitempty"`
}

// Bounds of idleMs.
const (
	leastIdle   = 500 * time.Millisecond
	mostIdle    = 10 * time.Minute
	defaultIdle = 5 * time.Second
)

// spec reads a request. Its error is an *Error.
func (e *Engine) spec(r *Request) (*Spec, error) {
	if r.Name == "" {
		return nil, invalid("name", "is missing; events/list lists the events")
	}
	i := slices.IndexFunc(e.kinds, func(k Kind) bool { return k.Name == r.Name })
	if i < 0 {
		return nil, &Error{Reason: NotFound, Text: fmt.Sprintf("no such event: %.60q; events/list lists them", r.Name), Data: map[string]any{"kind": "event"}}
	}
	s := &Spec{kind: &e.kinds[i], only: r.Only}
	if err := s.decode(r.Arguments); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.TerminalID != "" {
		id, err := agenttools.Resolve(e.opts.Terminals.List(), e.opts.Machine, s.TerminalID)
		if errors.Is(err, agenttools.ErrNotFound) {
			return nil, withdrawn()
		} else if err != nil {
			return nil, invalid("terminalId", "%v", err)
		}
		s.of, s.TerminalID = id, id
	}
	canonical, _ := json.Marshal(s.arguments) // cannot fail
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.kind.Name + "\n"))
	_, _ = h.Write(canonical)
	_, _ = h.Write([]byte(strings.Join(s.only, " ")))
	s.hash = h.Sum32()
	return s, nil
}

// decode decodes the arguments, and refuses those that the kind's schema does not name.
func (s *Spec) decode(args json.RawMessage) error {
	if len(args) == 0 || string(args) == "null" {
		return nil
	}
	var given map[string]json.RawMessage
	if err := jsonspan.Unmarshal(args, &given); err != nil {
		return invalid("arguments", "must be an object")
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = jsonspan.Unmarshal(s.kind.Input, &schema) // cannot fail: it is our own
	for name := range given {
		if _, ok := schema.Properties[name]; !ok {
			return invalid("arguments", "has %.40q, which %s does not take", name, s.kind.Name)
		}
	}
	if err := agenttools.Decode(args, &s.arguments); err != nil {
		return invalid("arguments", "%v", err)
	}
	return nil
}

func (s *Spec) check() error {
	switch {
	case s.kind.family == ofLines:
		text := ""
		if s.Pattern != nil {
			text = *s.Pattern
		}
		var err error
		if s.pattern, err = newPattern(text); err != nil {
			return invalid("pattern", "%v", err)
		}
	case s.MinDurationMs < 0:
		return invalid("minDurationMs", "must not be negative")
	case s.Port != nil && (*s.Port < 1 || *s.Port > 65535):
		return invalid("port", "must be 1 to 65535")
	case s.IdleMs != nil && (*s.IdleMs < leastIdle.Milliseconds() || *s.IdleMs > mostIdle.Milliseconds()):
		return invalid("idleMs", "must be %d to %d", leastIdle.Milliseconds(), mostIdle.Milliseconds())
	case s.Severity != "" && s.Severity != "error" && s.Severity != "warning" && s.Severity != "info":
		return invalid("severity", "must be error, warning or info")
	case s.To != "" && s.To != "failing" && s.To != "good":
		return invalid("to", "must be failing or good")
	}
	return nil
}

func (s *Spec) idle() time.Duration {
	if s.IdleMs == nil {
		return defaultIdle
	}
	return time.Duration(*s.IdleMs) * time.Millisecond
}

// covers reports whether the subscription is about a terminal.
func (s *Spec) covers(i agenttools.Info) bool {
	return (s.of == "" || s.of == i.ID) && (s.Machine == "" || s.Machine == i.Machine) && (len(s.only) == 0 || slices.Contains(s.only, i.ID))
}

// wants reports whether the subscription asks for this command's end.
func (s *Spec) wants(c *vocab.Command) bool {
	switch {
	case s.FailedOnly && (c.Exit == nil || *c.Exit == 0):
		return false
	case s.ExitCode != nil && (c.Exit == nil || *c.Exit != *s.ExitCode):
		return false
	}
	return c.Ms() >= s.MinDurationMs
}

// wantsExit reports whether the subscription asks for this exit.
func (s *Spec) wantsExit(x *vocab.Exit) bool {
	return !s.FailedOnly || x.Code != 0 || x.Signal != ""
}
