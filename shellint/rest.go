package shellint

import "strings"

// NewScannerAt returns a Scanner that continues at a raw offset at which an earlier
// Scanner, perhaps of another process, was at rest, see [Scanner.AtRest].
func NewScannerAt(o Options, off int64) *Scanner {
	s := NewScanner(o)
	s.off = off
	return s
}

// AtRest reports whether nothing is open or undecided. A new Scanner with the same
// Options that starts here then finds the same as s.
func (s *Scanner) AtRest() bool {
	return len(s.held) == 0 && !s.body.open && !s.ctx.unfinished()
}

// TrackerState is the state of a [Tracker], in a form that can be stored as JSON. It does
// not contain the bytes written to the terminal, which are never stored: after a restore,
// the line of the command that is being typed may be unknown.
type TrackerState struct {
	Trusted  bool  `json:"trusted,omitempty"`
	Detected bool  `json:"detected,omitempty"`
	Inside   bool  `json:"inside,omitempty"`
	Seen     int64 `json:"seen"`
	IDs      int64 `json:"ids,omitempty"`
	StateLane
	Unsigned StateLane `json:"unsigned,omitzero"`
}

// StateLane is the state that follows from either the trusted marks or the unsigned ones.
type StateLane struct {
	Use633  bool          `json:"use633,omitempty"`
	Pending *StateLine    `json:"pending,omitempty"`
	Open    *StateCommand `json:"open,omitempty"`
	Last    *StateCommand `json:"last,omitempty"`
}

// StateLine is a command line within a [TrackerState], cut to [MaxStateLine].
type StateLine struct {
	Text   string     `json:"text"`
	Source LineSource `json:"source"`
}

// StateCommand is a command within a [TrackerState].
type StateCommand struct {
	ID        int64     `json:"id,omitempty"`
	Announced bool      `json:"announced,omitempty"`
	Start     int64     `json:"start"`
	Line      StateLine `json:"line"`
	AID       string    `json:"aid,omitempty"`
	Within    int64     `json:"within,omitempty"`
}

// MaxStateLine bounds each text in a TrackerState, in bytes, before invalid UTF-8 is
// replaced by U+FFFD.
const MaxStateLine = 2 << 10

// State returns the tracker's state.
func (t *Tracker) State() TrackerState {
	return TrackerState{Trusted: t.trusted, Detected: t.detected, Inside: t.inside, Seen: t.seen, IDs: t.ids,
		StateLane: t.signed.state(), Unsigned: t.unsigned.state()}
}

// Restore replaces the state of t. Eager and Unsigned stay unchanged.
func (t *Tracker) Restore(s TrackerState) {
	*t = Tracker{Eager: t.Eager, Unsigned: t.Unsigned, Reader: t.Reader, trusted: s.Trusted, detected: s.Detected, inside: s.Inside, seen: s.Seen, ids: s.IDs,
		signed: s.StateLane.lane(true), unsigned: s.Unsigned.lane(false)}
}

func (l *lane) state() StateLane {
	s := StateLane{Use633: l.use633}
	if l.pending.source != SourceNone {
		text := l.pending.state()
		s.Pending = &text
	}
	if l.cur.open {
		s.Open = l.cur.state()
	}
	if l.last.announced {
		s.Last = l.last.state()
	}
	return s
}

func (s StateLane) lane(verified bool) lane {
	l := lane{use633: s.Use633}
	if s.Pending != nil {
		l.pending = line{text: s.Pending.Text, source: s.Pending.Source}
	}
	if s.Open != nil {
		l.cur = s.Open.command(verified)
		l.cur.open = true
	}
	if s.Last != nil {
		l.last = s.Last.command(verified)
	}
	return l
}

func (l line) state() StateLine {
	return StateLine{Text: strings.ToValidUTF8(l.text[:min(len(l.text), MaxStateLine)], "\uFFFD"), Source: l.source}
}

func (c command) state() *StateCommand {
	return &StateCommand{ID: c.id, Announced: c.announced, Start: c.start, Line: c.line.state(), AID: strings.ToValidUTF8(c.aid[:min(len(c.aid), MaxStateLine)], "\uFFFD"), Within: c.within}
}

func (c *StateCommand) command(verified bool) command {
	return command{id: c.ID, announced: c.Announced, start: c.Start, line: line{text: c.Line.Text, source: c.Line.Source}, aid: c.AID, verified: verified, within: c.Within}
}
