package runs

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strconv"

	"tether/agent/history"
	"tether/agent/term"
	"tether/agenttools"
	"tether/platform/pty"
	"tether/vocab"
)

// Open returns a run as a terminal that is read from the history, or
// agenttools.ErrNotFound. Its offsets count from the run's beginning: they are text
// offsets of the terminal less Run.Start. Of a run that goes on, it has what was printed
// until now.
func (v View) Open(id string) (agenttools.Terminal, error) {
	r, allowed, err := v.find(id)
	if err != nil {
		return nil, err
	}
	t, err := v.runs.opts.History.Text(id)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	s := &stored{history: v.runs.opts.History, run: r, allowed: allowed, end: max(t.End(), r.Start)}
	notes, err := t.Notes()
	if err != nil {
		return nil, err
	}
	s.take(notes)
	s.owner = agenttools.OwnerUser
	if r.Owner != "" && r.Owner != term.User.String() {
		s.owner = agenttools.OwnerAgent
	}
	return s, nil
}

// stored is a run in the history, as it was when it was opened. It never changes.
type stored struct {
	history  *history.History
	run      history.Run
	allowed  []history.Span // of its text, ascending
	end      int64          // text offset
	owner    agenttools.Owner
	cols     int // at its start
	rows     int
	dir      string // at its end
	commands []vocab.Command
	events   []agenttools.Event // ascending by Off, a text offset; without data
}

// take reads a terminal's notes, up to the run's end.
func (s *stored) take(notes []history.Note) {
	s.cols, s.rows, s.dir = int(pty.DefaultSize.Cols), int(pty.DefaultSize.Rows), s.run.Dir
	known := map[int]int{} // index in commands by number, plus 1
	for i := range notes {
		n := &notes[i]
		inside := n.Off >= s.run.Start && n.Off <= s.end && covers(s.allowed, n.Off)
		switch n.Kind {
		case history.NoteSize:
			if n.Off <= s.run.Start {
				s.cols, s.rows = n.Cols, n.Rows
			} else if inside {
				s.events = append(s.events, agenttools.Event{Off: n.Off, Resized: &[2]int{n.Cols, n.Rows}})
			}
		case history.NoteDir:
			if inside {
				s.dir = n.Dir
				s.events = append(s.events, agenttools.Event{Off: n.Off, Dir: n.Dir})
			}
		case history.NoteCommand, history.NoteFinished:
			c := n.Command
			if c == nil || s.run.Command > 0 && c.N != s.run.Command || !inside {
				continue
			}
			if at := known[c.N]; at > 0 {
				s.commands[at-1] = *c
			} else {
				s.commands = append(s.commands, *c)
				known[c.N] = len(s.commands)
			}
			if n.Kind == history.NoteFinished {
				s.events = append(s.events, agenttools.Event{Off: n.Off, Finished: c})
			}
		}
	}
}

// Info implements agenttools.Terminal.
func (s *stored) Info() agenttools.Info {
	r := &s.run
	i := agenttools.Info{
		ID: r.ID, Cwd: s.dir, Owner: s.owner, Visible: s.owner == agenttools.OwnerUser, CreatedAt: r.Started,
		Name: r.Name, Title: cmp.Or(r.Name, r.Line), Cols: s.cols, Rows: s.rows, Detection: len(s.commands) > 0,
		End: s.end - r.Start, Exit: r.Exit, Checkout: r.Checkout,
	}
	if n := len(s.allowed); n > 0 {
		i.Start, i.End = s.allowed[0].From-r.Start, min(s.end, s.allowed[n-1].To)-r.Start
	}
	if r.Line != "" {
		i.Command = []string{r.Line}
	}
	if r.Exit == nil && !r.Running() {
		i.Exit = &vocab.Exit{Code: -1, Reason: vocab.ExitLost, At: r.Ended}
	}
	return i
}

// Commands implements agenttools.Terminal.
func (s *stored) Commands() []vocab.Command {
	all := slices.Clone(s.commands)
	for i := range all {
		if c := &all[i]; c.Running {
			c.Start, c.End = max(c.Start-s.run.Start, 0), s.end-s.run.Start
		} else {
			c.Start, c.End = max(c.Start-s.run.Start, 0), max(c.End-s.run.Start, 0)
		}
	}
	return all
}

// Read implements agenttools.Terminal.
func (s *stored) Read(from int64) (agenttools.Reader, error) {
	i := s.Info()
	text, err := s.history.Text(s.run.ID)
	if err != nil {
		return nil, err
	}
	from = max(from, 0)
	at := min(max(from, i.Start), i.End)
	rd := &storedReader{s: s, text: text, pos: at + s.run.Start, end: i.End + s.run.Start, missing: max(from-at, 0), lost: max(at-from, 0)}
	for rd.next < len(s.events) && s.events[rd.next].Off <= rd.pos {
		rd.next++
	}
	text.SeekTo(rd.pos)
	return rd, nil
}

// storedReader is a cursor into a stored run, for one goroutine.
type storedReader struct {
	s       *stored
	text    *history.Text
	frame   history.Frame // what is left of the frame at or behind pos
	over    bool          // there are no more frames
	pos     int64
	end     int64
	lost    int64 // to be told first
	missing int64 // likewise
	next    int   // in s.events
	exited  bool
}

// TryNext implements agenttools.Reader.
func (r *storedReader) TryNext(buf []byte) (agenttools.Event, bool, error) {
	ev, ok, err := r.tryNext(buf)
	ev.Off -= r.s.run.Start
	return ev, ok, err
}

// tryNext is TryNext with text offsets.
func (r *storedReader) tryNext(buf []byte) (agenttools.Event, bool, error) {
	if r.missing+r.lost > 0 {
		ev := agenttools.Event{Missing: r.missing, Lost: r.lost, Off: r.pos}
		r.missing, r.lost = 0, 0
		return ev, true, nil
	}
	limit := r.end
	if r.next < len(r.s.events) {
		if ev := r.s.events[r.next]; ev.Off <= r.pos {
			r.next++
			return ev, true, nil
		}
		limit = min(limit, r.s.events[r.next].Off)
	}
	if r.pos < limit {
		ev, err := r.read(buf, limit)
		return ev, err == nil, err
	}
	switch {
	case r.exited:
		return agenttools.Event{}, false, io.EOF
	case r.s.run.Running():
		return agenttools.Event{}, false, nil
	}
	r.exited = true
	return agenttools.Event{Off: r.pos, Exited: true}, true, nil
}

// fill makes sure that the frame at or behind pos is there, if there is one.
func (r *storedReader) fill() error {
	for !r.over {
		if n := r.pos - r.frame.Off; n > 0 && len(r.frame.Data) > 0 {
			n = min(n, int64(len(r.frame.Data)))
			r.frame.Data, r.frame.Off = r.frame.Data[n:], r.frame.Off+n
		}
		if len(r.frame.Data) > 0 {
			return nil
		}
		f, err := r.text.Next()
		if err == io.EOF {
			r.over = true
			return nil
		}
		if err != nil {
			return err
		}
		r.frame = f
	}
	return nil
}

// read returns text at pos, or that it is not there.
func (r *storedReader) read(buf []byte, limit int64) (agenttools.Event, error) {
	if err := r.fill(); err != nil {
		return agenttools.Event{}, err
	}
	allowed, to := within(r.s.allowed, history.Span{From: r.pos, To: limit}), limit
	switch {
	case len(allowed) == 0:
	case allowed[0].From > r.pos:
		to = allowed[0].From
	case len(r.frame.Data) == 0:
	case r.frame.Off > r.pos:
		to = min(allowed[0].To, r.frame.Off)
	default:
		n := copy(buf, r.frame.Data[:min(int64(len(r.frame.Data)), allowed[0].To-r.pos)])
		r.pos += int64(n)
		return agenttools.Event{Data: buf[:n], Off: r.pos}, nil
	}
	lost := to - r.pos
	r.pos = to
	return agenttools.Event{Lost: lost, Off: r.pos}, nil
}

// Next implements agenttools.Reader. A run that goes on does not go on here.
func (r *storedReader) Next(ctx context.Context, buf []byte) (agenttools.Event, error) {
	ev, ok, err := r.TryNext(buf)
	if ok || err != nil {
		return ev, err
	}
	<-ctx.Done()
	return agenttools.Event{}, ctx.Err()
}

// Close implements agenttools.Reader.
func (r *storedReader) Close() { r.text.Close() }

// runID is the id of a command's run.
func runID(terminal string, n int) string { return terminal + "." + strconv.Itoa(n) }
