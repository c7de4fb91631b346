package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// bounds are what a terminal's text may take. Tests have smaller ones.
type bounds struct {
	frame   int           // bytes of text in a frame
	segment int64         // bytes of text in a segment
	frames  int           // frames in a segment
	joined  time.Duration // that a frame covers which is made of smaller ones
	head    int64         // bytes: so much of the first text stays
	tail    int64         // bytes: and so much of the newest
	notes   int64         // bytes of a file of notes at which the oldest go
	unit    int           // bytes of text that a search looks at in one step
}

var usualBounds = func() bounds {
	return bounds{frame: 128 << 10, segment: 4 << 20, frames: 4096, joined: 10 * time.Minute, head: 4 << 20, tail: 28 << 20, notes: 4 << 20, unit: 128 << 10}
}

// segment is a file with frames of one terminal.
type segment struct {
	off   int64 // of its first text, and in its name
	text  int64 // bytes of text
	bytes int64 // of the file
}

const (
	segmentPrefix = "text-"
	segmentExt    = ".zst"
	notesName     = "notes.jsonl"
)

// The offset has all its digits, so that names are in the order of the text.
func segmentName(off int64) string { return fmt.Sprintf("%s%019d%s", segmentPrefix, off, segmentExt) }

func parseSegmentName(name string) (off int64, ok bool) {
	digits, ok := strings.CutPrefix(name, segmentPrefix)
	digits, ok2 := strings.CutSuffix(digits, segmentExt)
	if !ok || !ok2 || len(digits) != 19 {
		return 0, false
	}
	off, err := strconv.ParseInt(digits, 10, 64)
	return off, err == nil && off >= 0 && off <= maxOffset
}

// Writer adds to the history of one terminal. It is safe for concurrent use. What it
// cannot write is missing in the history, and nothing else happens: its errors are for
// information.
type Writer struct {
	h  *History
	id string

	mu       sync.Mutex // held while the terminal's files are written
	run      Run
	buf      []byte // text before end that is not in a file yet
	first    time.Time
	last     time.Time
	end      int64
	segments []segment // oldest first
	file     File      // the last of segments, nil if none is open
	frames   int       // in file
	notes    File
	noted    int64 // bytes of the file of notes
	made     bool  // the directory exists
	finished bool
	commands int // the lowest number that no recorded command has, but for an earlier daemon's
	// What the next Sync has to do.
	unsynced bool
	unnoted  bool
	renamed  bool    // names in the directory are not synced
	toJoin   []int64 // offsets of closed segments with small frames
	toClose  []File  // closed segments that are not synced
}

// Run returns the terminal's newest record.
func (w *Writer) Run() Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run
}

// End is the offset after the text so far, what is missing included. In a daemon that
// goes on with a terminal it is first the offset after what is on disk.
func (w *Writer) End() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end
}

// Append adds text at End. It is in the file when a frame is full, or with the next Sync.
func (w *Writer) Append(p []byte, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.h.off() || w.finished {
		w.end += int64(len(p))
		return nil
	}
	var errs error
	for len(p) > 0 {
		if len(w.buf) == 0 {
			w.first = at
		}
		n := min(len(p), w.h.bounds.frame-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		w.end += int64(n)
		w.last = at
		p = p[n:]
		if len(w.buf) == w.h.bounds.frame {
			errs = errors.Join(errs, w.flushLocked(w.wholeLines()))
			w.first = at
		}
	}
	w.unsynced = true
	return errs
}

// wholeLines returns how much of buf ends with a line, all of it if lines are long.
func (w *Writer) wholeLines() int {
	if i := bytes.LastIndexByte(w.buf, '\n'); i >= len(w.buf)/2 {
		return i + 1
	}
	return len(w.buf)
}

// Missing says that n bytes of text at End are not known.
func (w *Writer) Missing(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n > 0 {
		_ = w.flushLocked(len(w.buf)) // Sync tells
		w.end += n
	}
}

// flushLocked writes the first n bytes of buf as a frame. If it cannot, they are missing.
func (w *Writer) flushLocked(n int) error {
	if n == 0 {
		return nil
	}
	f := Frame{Off: w.end - int64(len(w.buf)), Data: w.buf[:n], First: w.first, Time: w.last}
	err := w.writeLocked(&f)
	if n < len(w.buf) {
		w.buf = w.buf[:copy(w.buf, w.buf[n:])]
	} else if w.buf = w.buf[:0]; n < w.h.bounds.frame/2 {
		w.buf = nil // most terminals print little
	}
	if err != nil {
		w.h.failed(err)
	}
	return err
}

func (w *Writer) writeLocked(f *Frame) error {
	data := w.h.codec.pack(nil, f)
	if n := len(w.segments); w.file != nil && (w.segments[n-1].text >= w.h.bounds.segment || w.frames >= w.h.bounds.frames) {
		w.closeSegmentLocked()
	}
	if err := w.openSegmentLocked(f.Off); err != nil {
		return err
	}
	s := &w.segments[len(w.segments)-1]
	n, err := w.file.Write(data)
	w.h.grow(&s.bytes, int64(n))
	w.unsynced = true
	if err != nil {
		if n > 0 { // half a frame, which joining removes
			w.toJoin = append(w.toJoin, s.off)
			w.closeSegmentLocked()
		}
		return err
	}
	s.text += int64(len(f.Data))
	w.frames++
	return nil
}

func (w *Writer) openSegmentLocked(off int64) error {
	if w.file != nil {
		return nil
	}
	if err := w.makeLocked(); err != nil {
		return err
	}
	file, err := w.h.fs.Append(w.id + "/" + segmentName(off))
	if err != nil {
		return err
	}
	w.file, w.frames, w.renamed = file, 0, true
	if n := len(w.segments); n == 0 || w.segments[n-1].off != off {
		w.segments = append(w.segments, segment{off: off})
	}
	return w.dropMiddleLocked()
}

func (w *Writer) makeLocked() error {
	if w.made {
		return nil
	}
	if err := w.h.makeDir(w.id); err != nil {
		return err
	}
	w.made = true
	return nil
}

// closeSegmentLocked ends the last segment. Sync closes its file.
func (w *Writer) closeSegmentLocked() {
	if w.file == nil {
		return
	}
	w.toClose = append(w.toClose, w.file)
	s := &w.segments[len(w.segments)-1]
	if s.text < int64(w.frames)*int64(w.h.bounds.frame)/2 {
		w.toJoin = append(w.toJoin, s.off)
	}
	w.file = nil
}

// dropMiddleLocked removes the segments between the head and the tail.
func (w *Writer) dropMiddleLocked() error {
	from := w.run.Start + w.h.bounds.head
	to := w.end - w.h.bounds.tail
	for i := 0; i < len(w.segments)-1; i++ {
		if s := w.segments[i]; s.off >= from && w.segments[i+1].off <= to {
			if err := w.removeSegmentLocked(i); err != nil {
				return err
			}
			i--
		}
	}
	return nil
}

func (w *Writer) removeSegmentLocked(i int) error {
	if err := w.h.fs.Remove(w.id + "/" + segmentName(w.segments[i].off)); err != nil {
		return err
	}
	w.renamed = true
	w.h.grow(&w.segments[i].bytes, -w.segments[i].bytes)
	w.segments = slices.Delete(w.segments, i, i+1)
	return nil
}

// Note adds an event at End.
func (w *Writer) Note(n Note) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.h.off() || w.finished {
		return nil
	}
	err := w.noteLocked(n)
	if err != nil {
		w.h.failed(err)
	}
	return err
}

func (w *Writer) noteLocked(n Note) error {
	n.Off, n.Time = w.end, n.Time.UTC()
	line, err := json.Marshal(n)
	if err == nil && len(line) >= maxLine {
		err = fmt.Errorf("a note of %d bytes, at most %d", len(line), maxLine)
	}
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if w.notes == nil {
		if err := w.makeLocked(); err != nil {
			return err
		}
		file, err := w.h.fs.Append(w.id + "/" + notesName)
		if err != nil {
			return err
		}
		w.notes, w.renamed = file, true
		if w.noted > 0 { // the daemon before may have left half a line
			line = append([]byte{'\n'}, line...)
		}
	}
	written, err := w.notes.Write(line)
	w.h.grow(&w.noted, int64(written))
	w.unnoted = true
	if err != nil {
		w.notes.Close()
		w.notes = nil // the next one begins a new line
	}
	return err
}

// Finish records the end of the terminal, or of one of its commands.
func (w *Writer) Finish(r Run) error {
	if r.Command > 0 {
		return w.h.Put(r)
	}
	w.mu.Lock()
	err := w.flushLocked(len(w.buf))
	w.closeSegmentLocked()
	if r.End < 0 {
		r.End = w.end
	}
	var kept int64
	r.Size = roundUp(w.noted)
	for _, s := range w.segments {
		kept += s.text
		r.Size += roundUp(s.bytes)
	}
	r.Dropped = max(0, r.End-r.Start-kept)
	w.run = r
	w.finished = true
	w.mu.Unlock()
	return errors.Join(err, w.h.Put(r))
}

// flush writes what was added.
func (w *Writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flushLocked(len(w.buf))
}

// sync makes what was written last, and closes what is complete. The returned function,
// to be called in the same round, tidies the terminal's files and reports whether the
// terminal has ended.
func (w *Writer) sync() (tidy func() (done bool, err error), err error) {
	w.mu.Lock()
	err = w.flushLocked(len(w.buf))
	done := w.finished // later than this it needs another round
	file, notes, closing, joining, names := w.file, w.notes, w.toClose, w.toJoin, w.renamed
	unsynced, unnoted := w.unsynced, w.unnoted
	w.unsynced, w.unnoted, w.renamed, w.toClose, w.toJoin = false, false, false, nil, nil
	w.mu.Unlock()
	err = errors.Join(err, syncAndClose(closing))
	if unsynced && file != nil {
		err = errors.Join(err, file.Sync())
	}
	if unnoted && notes != nil {
		err = errors.Join(err, notes.Sync())
	}
	if names {
		err = errors.Join(err, w.h.fs.SyncDir(w.id))
	}
	if err != nil { // the next round tries again
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unsynced, w.unnoted, w.renamed = w.unsynced || unsynced, w.unnoted || unnoted, w.renamed || names
		w.toJoin = append(joining, w.toJoin...)
		return func() (bool, error) { return done, nil }, err
	}
	return func() (bool, error) { return done, w.tidy(joining, done) }, nil
}

// tidy joins frames of closed segments, and removes the oldest of too many notes. What is
// added meanwhile does not wait for the disk.
func (w *Writer) tidy(joining []int64, done bool) (err error) {
	for _, off := range joining {
		err = errors.Join(err, w.join(off))
	}
	w.mu.Lock()
	tooMany := w.noted > w.h.bounds.notes
	w.mu.Unlock()
	if tooMany {
		err = errors.Join(err, w.prune(w.tooMany()))
	}
	if done {
		err = errors.Join(err, w.close())
	}
	return err
}

func syncAndClose(files []File) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	return err
}

// close ends the writing without the end of the terminal.
func (w *Writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closeLocked()
}

func (w *Writer) closeLocked() (err error) {
	for _, f := range []File{w.file, w.notes} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	w.file, w.notes = nil, nil
	return err
}

// join makes few large frames of the small ones of a closed segment.
func (w *Writer) join(off int64) error {
	s, ok := w.closedAt(off)
	if !ok {
		return nil
	}
	return w.rewrite(s, nil)
}

// closedAt returns the segment with that offset, unless it is gone or written again.
func (w *Writer) closedAt(off int64) (segment, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.closedLocked(off)
	if i < 0 {
		return segment{}, false
	}
	return w.segments[i], true
}

func (w *Writer) closedLocked(off int64) int {
	return slices.IndexFunc(w.closed(), func(s segment) bool { return s.off == off })
}

// rewrite writes a closed segment anew without some of its text, unless it has changed
// meanwhile. One without text is removed.
func (w *Writer) rewrite(was segment, without []Span) error {
	size, text, err := w.h.rewrite(w.id, was.off, without)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name := w.id + "/" + segmentName(was.off)
	i := w.closedLocked(was.off)
	if i < 0 || w.segments[i] != was {
		return w.h.fs.Remove(name + newExt)
	}
	if size == 0 {
		return w.removeSegmentLocked(i)
	}
	if err := w.h.fs.Rename(name+newExt, name); err != nil {
		return err
	}
	w.renamed = true
	s := &w.segments[i]
	w.h.grow(&s.bytes, size-s.bytes)
	s.text = text
	return nil
}
