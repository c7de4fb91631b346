package events

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"tether/agenttools"
	"tether/internal/plain"
)

const (
	// stands is how long an unfinished line must not change before it counts as a line.
	stands = 200 * time.Millisecond
	// lookBack is how far before the end of the output the beginning of the unfinished
	// line is searched.
	lookBack = plain.MaxRaw
)

// part is one terminal of a subscription to kinds of the log.
type part struct {
	sub *Sub
	id  string
	// Guarded by the watch's mu, or owned by the goroutine that reads for this part
	// alone.
	from place // where it starts: nothing before counts
	told toldLine

	// Guarded by sub.mu.
	watch  *watch // nil while it is not followed
	at     place  // place up to which it was examined, while no watch has it
	exited bool   // the list says that the terminal has exited
	group  group  // matches that were not delivered yet
	before place  // the place before the group
	sent   time.Time
	lost   bool // events were lost and the subscriber was not told yet
}

// toldLine is an unfinished line that was reported because it stood still.
type toldLine struct {
	start, end int64
	text       string
}

// watch reads one terminal for all subscriptions with the same needs. It is used by one
// goroutine, except for the fields that mu guards.
//
// States: a watch that is followed belongs to its goroutine, which ends with ctx; one
// that is stepped by hand belongs to its caller.
type watch struct {
	t agenttools.Terminal

	mu       sync.Mutex // held while a piece is examined
	parts    []*part
	split    plain.Lines
	render   plain.Renderer
	off      int64 // offset up to which was read
	finished int64 // number of ends of commands at off that were examined
	moved    time.Time
	stood    int64       // offset up to which an unfinished line that stood still was examined
	exited   atomic.Bool // the terminal has exited, and all was read

	dead   atomic.Bool // reading has ended, although the terminal may continue; set with mu
	rd     agenttools.Reader
	key    watchKey
	cancel context.CancelFunc // of the following goroutine, or nil
	// idle is called by that goroutine when all output is examined; alone says that the
	// watch has to meet the shared one yet. Or nil.
	idle func() (alone bool)
}

// newWatch reads a terminal from a place on.
func newWatch(t agenttools.Terminal, from place) (*watch, error) {
	w := &watch{t: t, off: from.off}
	var err error
	if w.rd, err = t.Read(from.off); err != nil {
		return nil, err
	}
	w.split.Begin(from.off)
	return w, nil
}

// newWatchNow reads a terminal from the end of its output on. It knows the text of the
// unfinished line, and does not report commands that have ended already.
func newWatchNow(t agenttools.Terminal) (*watch, error) {
	i := t.Info()
	w, err := newWatch(t, place{off: max(i.Start, i.End-lookBack)})
	if err != nil {
		return nil, err
	}
	for ev, err := range agenttools.Available(w.rd) {
		if err != nil {
			break
		}
		if w.take(ev); ev.Off >= i.End && len(ev.Data) > 0 {
			break
		}
	}
	w.stood = w.off
	return w, nil
}

// place returns the place up to which a part's kind was examined. w.mu must be held, or
// the watch must belong to the caller.
func (w *watch) place(p *part) place {
	at := place{off: w.split.Start}
	switch {
	case p.sub.spec.kind.family == ofCommands:
		at = place{w.off, w.finished}
	case p.told.start == w.split.Start && p.told.end > 0:
		at.aux = p.told.end
	}
	if at.before(p.from) {
		return p.from
	}
	return at
}

// take examines one event.
func (w *watch) take(ev agenttools.Event) {
	if ev.Off != w.off {
		w.finished = 0
	}
	w.off = ev.Off
	switch {
	case ev.Lost > 0, ev.Missing > 0:
		w.split.Begin(ev.Off)
		for _, p := range w.parts {
			p.sub.lose(p)
		}
	case ev.Exited:
		w.stand()
		w.exited.Store(true) // after the last match, since a subscription to one terminal ends with it
		for _, p := range w.parts {
			p.sub.signal() // no more events can follow
		}
	case ev.Finished != nil:
		w.finished++
		w.command(ev)
	case len(ev.Data) > 0:
		w.moved = time.Now()
		w.split.Runs(ev.Off-int64(len(ev.Data)), ev.Data, w.lines)
	}
}

// command reports the end of a command.
func (w *watch) command(ev agenttools.Event) {
	at := place{ev.Off, w.finished}
	for _, p := range w.parts {
		if p.sub.spec.kind.family == ofCommands && p.from.before(at) && p.sub.spec.wants(ev.Finished) {
			c := *ev.Finished
			p.sub.match(p, match{start: c.Start, end: ev.Off, command: &c, after: at, at: time.Now()})
		}
	}
}

// lines examines whole lines. Lines whose bytes are their text are examined only around a
// pattern's literal.
func (w *watch) lines(start, end int64, text []byte) {
	if !plain.Same(text) {
		plain.Each(start, end, text, w.line)
		return
	}
	for _, p := range w.parts {
		s := p.sub.spec
		if s.kind.family != ofLines {
			continue
		}
		for at := 0; at < len(text); {
			if s.pattern.literal != nil {
				i := bytes.Index(text[at:], s.pattern.literal)
				if i < 0 {
					break
				}
				at += bytes.LastIndexByte(text[at:at+i], '\n') + 1
			}
			n := bytes.IndexByte(text[at:], '\n') + 1
			if n == 0 {
				n = len(text) - at
			}
			w.try(p, start+int64(at), start+int64(at+n), text[at:at+n], nil)
			at += n
		}
	}
}

// line examines one finished line.
func (w *watch) line(start, end int64, raw []byte) {
	var text []byte
	for _, p := range w.parts {
		if p.sub.spec.kind.family != ofLines {
			continue
		}
		if text == nil {
			text = bytes.Clone(visible(&w.render, raw))
		}
		w.try(p, start, end, raw, text)
	}
}

// try matches a finished line; text is its visible text, nil if that is not known yet.
func (w *watch) try(p *part, start, end int64, raw, text []byte) {
	if start < p.from.off {
		return
	}
	if text == nil {
		text = visible(&w.render, raw)
	}
	q := p.sub.spec.pattern
	if q.literal != nil && !bytes.Contains(text, q.literal) || !q.re.Match(text) {
		return
	}
	if p.knows(start, raw, w.split.Cut, text) {
		return // it was reported when it stood still
	}
	p.sub.match(p, match{start: start, end: end, line: string(text), after: place{off: end}, at: time.Now()})
}

// knows reports whether a matching line is the one that was reported when it stood still:
// text was only appended to it, or it shows the same text again.
func (p *part) knows(start int64, raw []byte, cut bool, text []byte) bool {
	if aux := p.from.aux; aux > 0 && p.from.off == start && p.told.end == 0 {
		var r plain.Renderer
		n := min(int64(len(raw)), aux-start)
		p.told = toldLine{start, aux, string(visible(&r, raw[:n]))}
	}
	if p.told.end == 0 || p.told.start != start {
		return false
	}
	return string(text) == p.told.text || !cut && !redrawn(raw, p.told.end-start)
}

// waiting reports whether there is an unfinished line that must be reported once it has
// stood still.
func (w *watch) waiting() bool {
	if len(w.split.Part) == 0 || w.stood == w.off {
		return false
	}
	for _, p := range w.parts {
		if p.sub.spec.kind.family == ofLines {
			return true
		}
	}
	return false
}

// stand reports the unfinished line, which has stood still.
func (w *watch) stand() {
	if w.stood = w.off; len(w.split.Part) == 0 {
		return
	}
	start, end := w.split.Start, w.off
	text := bytes.Clone(visible(&w.render, w.split.Part))
	for _, p := range w.parts {
		q := p.sub.spec.pattern
		if q == nil || start < p.from.off || p.from.off == start && end <= p.from.aux {
			continue
		}
		switch matches := w.shows(q); {
		case !matches && p.told.end > 0 && p.told.start == start:
			p.told = toldLine{start, end, string(text)} // the reported text is gone; if it appears again, it counts again
			continue
		case !matches || p.knows(start, w.split.Part, w.split.Cut, text):
			continue
		}
		p.told = toldLine{start, end, string(text)}
		p.sub.match(p, match{start: start, end: end, line: string(text), after: place{start, end}, at: time.Now()})
	}
}

// settle marks the present last line as reported, for a subscription that begins now.
func (w *watch) settle(p *part) {
	if q := p.sub.spec.pattern; q != nil && len(w.split.Part) > 0 && w.shows(q) {
		p.told = toldLine{w.split.Start, w.off, string(visible(&w.render, w.split.Part))}
	}
}

// shows reports whether the unfinished line matches, with or without the blanks at its
// end, which a prompt has.
func (w *watch) shows(q *pattern) bool {
	text := unfinished(&w.render, w.split.Part)
	return q.re.Match(text) || q.re.Match(bytes.TrimRight(text, " "))
}

// step examines available output, at most about limit bytes. more reports whether there
// may be more.
func (w *watch) step(limit int) (more bool) {
	for ev, err := range agenttools.Available(w.rd) {
		if err != nil {
			return false
		}
		w.See(ev)
		if limit -= max(len(ev.Data), 1); limit <= 0 {
			return true
		}
	}
	return false
}

// See implements agenttools.Follower.
func (w *watch) See(ev agenttools.Event) (more bool) {
	w.locked(func() { w.take(ev) })
	return !w.exited.Load()
}

// Stands implements agenttools.Follower.
func (w *watch) Stands() (at time.Time) {
	if w.idle != nil && w.idle() {
		at = time.Now().Add(stands) // to try again
	}
	w.locked(func() {
		if w.waiting() {
			at = w.moved.Add(stands)
		}
	})
	return at
}

// Stand implements agenttools.Follower.
func (w *watch) Stand() (more bool) {
	w.locked(func() {
		if w.waiting() && time.Since(w.moved) >= stands {
			w.stand()
		}
	})
	return true
}

// locked calls f with the lock, and releases the lock even if f panics.
func (w *watch) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}
