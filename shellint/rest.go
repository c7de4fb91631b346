package shellint

// NewScannerAt returns a Scanner that goes on at a raw offset where another one was at rest, see [Scanner.AtRest]: in another process,
// after the first one is gone.
func NewScannerAt(o Options, off int64) *Scanner {
	s := NewScanner(o)
	s.off = off
	return s
}

// AtRest says whether nothing is open or undecided: a new Scanner with the same Options that starts here finds what this one would.
func (s *Scanner) AtRest() bool {
	return len(s.held) == 0 && !s.body.open && !s.ctx.unfinished()
}

// TrackerState is what a [Tracker] knows, in a form that can be kept as JSON. It does not hold what was written to the terminal, which
// is never kept: the line of the command that is being typed may be unknown after a restore.
type TrackerState struct {
	Detected bool          `json:"detected,omitempty"`
	Use633   bool          `json:"use633,omitempty"`
	Seen     int64         `json:"seen"`
	IDs      int64         `json:"ids,omitempty"`
	Pending  *StateLine    `json:"pending,omitempty"`
	Open     *StateCommand `json:"open,omitempty"`
	Last     *StateCommand `json:"last,omitempty"`
}

// StateLine is a command line within a [TrackerState], at most [MaxStateLine] bytes of it.
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
}

// MaxStateLine bounds each text in a TrackerState, in bytes.
const MaxStateLine = 2 << 10

// State returns what t knows.
func (t *Tracker) State() TrackerState {
	s := TrackerState{Detected: t.detected, Use633: t.use633, Seen: t.seen, IDs: t.ids}
	if t.pending.source != SourceNone {
		l := t.pending.state()
		s.Pending = &l
	}
	if t.cur.open {
		s.Open = t.cur.state()
	}
	if t.last.announced {
		s.Last = t.last.state()
	}
	return s
}

// Restore makes t go on from a state. Eager stays as it is.
func (t *Tracker) Restore(s TrackerState) {
	*t = Tracker{Eager: t.Eager, detected: s.Detected, use633: s.Use633, seen: s.Seen, ids: s.IDs}
	if s.Pending != nil {
		t.pending = line{text: s.Pending.Text, source: s.Pending.Source}
	}
	if s.Open != nil {
		t.cur = s.Open.command()
		t.cur.open = true
	}
	if s.Last != nil {
		t.last = s.Last.command()
	}
}

func (l line) state() StateLine {
	return StateLine{Text: l.text[:min(len(l.text), MaxStateLine)], Source: l.source}
}

func (c command) state() *StateCommand {
	return &StateCommand{ID: c.id, Announced: c.announced, Start: c.start, Line: c.line.state(), AID: c.aid[:min(len(c.aid), MaxStateLine)]}
}

func (c *StateCommand) command() command {
	return command{id: c.ID, announced: c.Announced, start: c.Start, line: line{text: c.Line.Text, source: c.Line.Source}, aid: c.AID}
}
