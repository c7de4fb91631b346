package history

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// measure adds up what is on disk, removes files that were not complete, and makes
// records of terminals that the list does not have, because it was damaged.
func (h *History) measure(idx *index) (bytes int64, err error) {
	entries, err := h.fs.List(".")
	for _, e := range entries {
		if !e.Dir || !isTerminal(e.Name) {
			continue
		}
		files, e1 := h.fs.List(e.Name)
		bytes += block
		for _, f := range files {
			switch {
			case f.Dir || !isOurs(f.Name):
			case strings.HasSuffix(f.Name, newExt):
				e1 = errors.Join(e1, h.fs.Remove(e.Name+"/"+f.Name))
			default:
				bytes += roundUp(f.Size)
			}
		}
		if e1 == nil && !idx.has(e.Name) {
			e1 = h.adopt(e.Name)
		}
		err = errors.Join(err, e1)
	}
	return bytes, err
}

// isOurs reports whether a terminal's directory has files of that name.
func isOurs(name string) bool {
	name = strings.TrimSuffix(name, newExt)
	_, ok := parseSegmentName(name)
	return ok || name == notesName
}

// adopt makes a record of a terminal whose text is there. Nobody but the person sees it.
func (h *History) adopt(terminal string) error {
	r := Run{ID: terminal, Terminal: terminal, Lost: true}
	segments, err := h.segments(terminal)
	for _, off := range segments {
		data, e := h.readSegment(terminal, off)
		err = errors.Join(err, e)
		for hd := range headers(data) {
			if r.Started.IsZero() {
				r.Started = time.UnixMicro(hd.first)
			}
			r.Ended, r.End = time.UnixMicro(hd.last), hd.off+int64(hd.text)
		}
	}
	if err != nil || r.Ended.IsZero() {
		return err
	}
	line, err := r.encode()
	if err == nil {
		_, _, err = h.list.put(line, true)
	}
	return err
}

// Settle says that every terminal that still runs has its Writer. What else has no end in
// the list has ended with its daemon: its last text tells when.
func (h *History) Settle() error {
	if h.off() {
		return nil
	}
	var lost []Run
	err := h.list.all(h.opts.Now(), func(r *Run, _ time.Time) {
		if r.Running() && h.writer(r.Terminal) == nil {
			lost = append(lost, *r)
		}
	})
	for _, r := range lost {
		r.Lost, r.Ended = true, r.Started
		if t, e := h.Text(r.ID); e == nil {
			r.End = r.Start
			for f, e := t.Next(); e == nil; f, e = t.Next() {
				r.End = f.End()
				if f.Time.After(r.Ended) {
					r.Ended = f.Time
				}
			}
			t.Close()
		}
		err = errors.Join(err, h.Put(r))
	}
	return err
}

// clock knows whether the time can be relied on for removing what is old: it has not
// jumped for a while.
type clock struct {
	wall   time.Time
	mono   time.Time
	steady time.Time // since then, on the monotonic clock
	next   time.Time // when the ages are looked at again
	full   time.Time // when there was still too much, and nothing to remove
}

const (
	steadyFor = 10 * time.Minute
	jump      = time.Minute
	fullFor   = time.Minute // so long nothing more is removed then
)

// due reports whether to look for old runs now.
func (c *clock) due(wall time.Time, keep time.Duration) bool {
	mono := time.Now()
	drift := wall.Round(0).Sub(c.wall) - mono.Sub(c.mono)
	if c.mono.IsZero() || drift.Abs() > jump {
		c.steady = mono
	}
	c.wall, c.mono = wall.Round(0), mono
	wait := min(steadyFor, keep)
	if mono.Sub(c.steady) < wait || mono.Before(c.next) {
		return false
	}
	c.next = mono.Add(wait)
	return true
}

// tidy removes what is too old, then the oldest of what is too much, and writes the list
// anew if it is stale.
func (h *History) tidy() error {
	now := h.opts.Now()
	old := h.clock.due(now, h.opts.Keep)
	full := h.tooMuch(0) && (h.clock.full.IsZero() || time.Since(h.clock.full) > fullFor)
	if !old && !full {
		if h.list.stale() {
			return h.rewriteList(func(*Run) bool { return true })
		}
		return nil
	}
	var ended, commands []aged
	gone := map[string]bool{}
	cuts := map[string]*cut{}
	err := h.list.all(now, func(r *Run, notBefore time.Time) {
		if r.Running() {
			return
		}
		at := r.Ended
		if at.Before(notBefore) {
			at = notBefore // the clock was wrong: it began after others
		}
		a := aged{r.ID, r.Terminal, r.Command, Span{r.Start, r.End}, at}
		live := h.writer(r.Terminal) != nil
		switch expired := old && now.Sub(at) > h.opts.Keep; {
		case r.Command == 0 && !live: // with a writer it has just ended
			ended = append(ended, a)
			gone[r.ID] = expired
		case r.Command > 0 && expired:
			a.cut(cuts, gone)
		case r.Command > 0 && live:
			commands = append(commands, a)
		}
	})
	slices.SortStableFunc(ended, func(a, b aged) int { return a.at.Compare(b.at) })
	room := int64(0)
	removed := false
	for _, a := range ended {
		if !gone[a.id] && h.tooMuch(room) {
			gone[a.id] = true
			room = h.opts.MaxBytes / 16 // more goes at once, so that it is not for every run
		}
		if gone[a.id] {
			removed = true
			delete(cuts, a.id)
			err = errors.Join(err, h.removeTerminal(a.id))
		}
	}
	if h.tooMuch(0) { // what is left are terminals that run
		for _, a := range commands[:(len(commands)+1)/2] {
			a.cut(cuts, gone)
		}
	}
	for terminal, c := range cuts {
		err = errors.Join(err, h.cut(terminal, c))
	}
	if removed || len(cuts) > 0 {
		err = errors.Join(err, h.syncNames(), h.rewriteList(func(r *Run) bool { return !gone[r.ID] && !gone[r.Terminal] }))
	}
	err = errors.Join(err, h.shrink())
	if h.clock.full = (time.Time{}); h.tooMuch(0) {
		h.clock.full = time.Now()
	}
	return err
}

// aged is a run that has ended.
type aged struct {
	id, terminal string
	command      int
	text         Span
	at           time.Time // of its end
}

func (a *aged) cut(cuts map[string]*cut, gone map[string]bool) {
	gone[a.id] = true
	c := cutOf(cuts, a.terminal)
	c.spans = append(c.spans, a.text)
	c.commands[a.command] = true
}

// tooMuch reports whether less than room bytes are free below MaxBytes.
func (h *History) tooMuch(room int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opts.MaxBytes > 0 && h.bytes > h.opts.MaxBytes-room
}

// shrink removes closed segments of running terminals while there is too much, of the
// largest terminals first.
func (h *History) shrink() error {
	for h.tooMuch(0) {
		var largest *Writer
		var most int64
		for _, w := range h.live() {
			if n := w.closedBytes(); n > most {
				largest, most = w, n
			}
		}
		if largest == nil {
			return nil // what was printed last stays
		}
		if err := largest.dropOldest(); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) closedBytes() (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.closed() {
		n += roundUp(s.bytes)
	}
	return n
}

// closed returns the segments to which nothing is added.
func (w *Writer) closed() []segment {
	if w.file == nil {
		return w.segments
	}
	return w.segments[:len(w.segments)-1]
}

// dropOldest removes the oldest closed segment but the first one, which has the start of
// the text, and that one if there is no other.
func (w *Writer) dropOldest() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch n := len(w.closed()); {
	case n > 1:
		return w.removeSegmentLocked(1)
	case n == 1:
		return w.removeSegmentLocked(0)
	}
	return nil
}

// removeTerminal removes a terminal's directory. Files that are not ours stay in it.
func (h *History) removeTerminal(id string) error {
	files, err := h.fs.List(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	foreign := false
	for _, f := range files {
		if f.Dir || !isOurs(f.Name) {
			foreign = true
			continue
		}
		e := h.fs.Remove(id + "/" + f.Name)
		if err = errors.Join(err, e); e == nil {
			size := f.Size
			h.grow(&size, -size)
		}
	}
	if err != nil || foreign {
		return err
	}
	if err := h.fs.Remove(id); err != nil {
		return err
	}
	h.mu.Lock()
	h.bytes -= block
	h.names = true
	h.mu.Unlock()
	return nil
}

// removeAll removes the history.
func (h *History) removeAll() error {
	entries, err := h.fs.List(".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		switch {
		case e.Dir && isTerminal(e.Name):
			err = errors.Join(err, h.removeTerminal(e.Name))
		case e.Name == listName, e.Name == listName+newExt, e.Name == listName+damagedExt:
			err = errors.Join(err, h.fs.Remove(e.Name))
		}
	}
	return errors.Join(err, h.fs.SyncDir("."))
}

func (h *History) rewriteList(keep func(*Run) bool) error {
	freed, err := h.list.rewrite(keep)
	h.mu.Lock()
	h.bytes -= freed
	h.mu.Unlock()
	return err
}

// syncNames makes last which directories there are.
func (h *History) syncNames() error {
	h.mu.Lock()
	names := h.names
	h.names = false
	h.mu.Unlock()
	if !names {
		return nil
	}
	err := h.fs.SyncDir(".")
	if err != nil {
		h.mu.Lock()
		h.names = true
		h.mu.Unlock()
	}
	return err
}

// cut is what is to be removed of a terminal that stays.
type cut struct {
	spans    []Span
	commands map[int]bool // whose notes go, too
	all      bool         // everything until now
}

func cutOf(cuts map[string]*cut, terminal string) *cut {
	if cuts[terminal] == nil {
		cuts[terminal] = &cut{commands: map[int]bool{}}
	}
	return cuts[terminal]
}

// Forget removes the runs that match, with their text, and returns their number and the
// bytes that are free now. A terminal's commands go with it. Of a run that goes on, the
// text until now goes; its record stays.
func (h *History) Forget(match func(Run) bool) (n int, freed int64, err error) {
	if h.off() {
		return 0, 0, nil
	}
	h.turn <- struct{}{}
	defer h.leave()
	before := h.size()
	_ = h.syncWriters()        // the next round tells; those that have ended are no writers from here on
	whole := map[string]bool{} // terminals whose commands go
	gone := map[string]bool{}  // runs whose records go
	cuts := map[string]*cut{}
	err = h.list.all(h.opts.Now(), func(r *Run, _ time.Time) {
		if !match(*r) && !whole[r.Terminal] {
			return
		}
		n++
		live := h.writer(r.Terminal) != nil
		if r.Command == 0 {
			whole[r.ID] = true
			if !live {
				gone[r.ID] = true
				return
			}
		}
		c := cutOf(cuts, r.Terminal)
		c.all = c.all || r.Command == 0
		if c.spans = append(c.spans, Span{r.Start, r.End}); r.Running() {
			c.spans[len(c.spans)-1].To = maxOffset
		}
		if r.Command > 0 && !(r.Running() && live) {
			gone[r.ID] = true
			c.commands[r.Command] = true
		}
	})
	if err != nil {
		return 0, 0, err
	}
	for terminal := range whole {
		if gone[terminal] {
			delete(cuts, terminal)
			err = errors.Join(err, h.removeTerminal(terminal))
		}
	}
	for terminal, c := range cuts {
		err = errors.Join(err, h.cut(terminal, c))
	}
	if n > 0 {
		err = errors.Join(err, h.syncNames(), h.rewriteList(func(r *Run) bool { return !gone[r.ID] }))
	}
	if err != nil {
		err = fmt.Errorf("not everything could be removed: %w", err)
	}
	return n, max(0, before-h.size()), err
}

func (h *History) size() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}

// cut removes text and notes of a terminal that stays.
func (h *History) cut(terminal string, c *cut) error {
	w := h.writer(terminal)
	live := w != nil
	if !live { // it has ended
		w = &Writer{h: h, id: terminal}
		if err := w.goOn(); err != nil {
			return err
		}
		w.toJoin = nil
	}
	closed, err := w.beginCut(live)
	end := w.End()
	for i := len(closed) - 1; i >= 0; i-- {
		to := end
		if i+1 < len(closed) {
			to = closed[i+1].off
		}
		s := closed[i]
		touched := slices.ContainsFunc(c.spans, func(sp Span) bool { return sp.From < to && sp.To > s.off })
		if touched {
			err = errors.Join(err, w.rewrite(s, c.spans))
		}
	}
	err = errors.Join(err, w.prune(func(_ int, n *Note, newest bool) bool {
		if n.Command != nil && c.commands[n.Command.N] {
			return true
		}
		return c.all && !newest && n.Kind != NoteCommand // the one that runs; the others are in commands
	}))
	w.mu.Lock()
	made := w.made
	w.mu.Unlock()
	if made {
		err = errors.Join(err, h.fs.SyncDir(terminal))
	}
	return err
}

// beginCut writes what there is, and returns the segments to which nothing is added from
// here on.
func (w *Writer) beginCut(live bool) (closed []segment, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.made && w.end == w.run.Start {
		return nil, nil
	}
	err = w.flushLocked(len(w.buf))
	w.closeSegmentLocked()
	err = errors.Join(err, syncAndClose(w.toClose)) // some systems do not replace open files
	w.toClose = nil
	if live {
		err = errors.Join(err, w.noteLocked(Note{Kind: NoteForgot, Time: w.h.opts.Now()}))
	}
	return slices.Clone(w.segments), err
}
