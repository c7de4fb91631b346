// Package history keeps on disk what terminals printed, as a list of runs: terminals from
// start to exit, and commands of shells. It knows no terminals; who has one writes:
//
//	h, err := history.Open(history.Options{Dir: dir, Keep: week, MaxBytes: 256 << 20})
//	w, err := h.Terminal(history.Run{ID: id, Terminal: id, Started: now, End: -1})
//	err = w.Append(text, now)
//	err = h.Sync(ctx) // once a second
//
// There is no database. A directory per terminal has its text in segments, files of
// frames that zstdcat can read, and notes about places in the text. One list has all
// runs. Files are only appended to, or written anew beside and renamed, so that a loss of
// power costs what was not synced.
//
// One process at a time may write; the daemon's lock sees to that. If two do, no text is
// lost, because each has terminals of its own; but records that one appends to the list
// while the other writes it anew are.
package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options configure a History. Dir is required.
type Options struct {
	Dir      string
	Keep     time.Duration // runs that ended longer ago are removed; 0 turns the history off and removes all
	MaxBytes int64         // on disk, of everything; 0 is no bound
	FS       FS            // nil: Dir on disk
	Now      func() time.Time
	// Report is called when what terminals print cannot be kept, with the reason, and
	// with "" when it can be again.
	Report func(trouble string)
}

// History is what is kept of all runs. It is safe for concurrent use.
type History struct {
	opts   Options
	fs     *gate
	codec  *codec
	bounds bounds
	list   list
	// turn holds a value while Sync or Forget works: one at a time.
	turn  chan struct{}
	clock clock // of the one whose turn it is

	preparing sync.Mutex // held while the directory is made and read
	prepared  bool

	mu      sync.Mutex
	writers map[string]*Writer
	bytes   int64 // on disk
	names   bool  // names in the directory are not synced
	failure error // the newest since the last round
	trouble string
	damaged int
	began   time.Time // the round that goes on
	took    time.Duration
}

// Open opens the history, or makes it. A disk that cannot be used is no error: it is
// reported, and tried again with each write. So is what is damaged.
func Open(o Options) (*History, error) {
	if o.Dir == "" {
		return nil, errors.New("the history has no directory")
	}
	h := &History{opts: o, fs: &gate{FS: o.FS}, codec: newCodec(), bounds: usualBounds(), turn: make(chan struct{}, 1), writers: map[string]*Writer{}}
	if o.FS == nil {
		h.fs.FS = Disk(o.Dir)
	}
	if h.opts.Now == nil {
		h.opts.Now = time.Now
	}
	if h.opts.Report == nil {
		h.opts.Report = func(string) {}
	}
	h.list.fs = h.fs
	if h.off() {
		return h, h.removeAll()
	}
	h.report(h.prepare())
	return h, nil
}

// prepare makes the directory and reads it, unless that has been done.
func (h *History) prepare() error {
	h.preparing.Lock()
	defer h.preparing.Unlock()
	if h.prepared {
		return nil
	}
	if err := h.fs.MakeDir("."); err != nil {
		return err
	}
	h.prepared = true
	return h.load()
}

func (h *History) off() bool { return h.opts.Keep <= 0 }

// load reads the list, and what is on disk.
func (h *History) load() error {
	idx, err := h.list.open()
	if err != nil {
		// It is no file, for example. What has its name is not ours.
		if err := h.fs.Rename(listName, listName+damagedExt); err != nil {
			return err
		}
		h.list = list{fs: h.fs}
	}
	bytes, err := h.measure(&idx)
	h.mu.Lock()
	h.damaged, h.bytes = idx.damaged, h.bytes+roundUp(h.list.size)+bytes
	h.mu.Unlock()
	return err
}

// closeWithin is how long Close waits for the disk.
const closeWithin = time.Second

// Close ends the writing: what there is of all terminals is written, and then synced for
// at most a second. What the disk has not taken by then, the system writes later. After
// Close nothing is written any more, so that another process may.
func (h *History) Close() error {
	began := time.Now()
	closed := make(chan error, 1)
	go func() { // it ends when the disk has answered
		closed <- errors.Join(h.flush(), h.Sync(context.Background()), h.closeFiles())
	}()
	select {
	case err := <-closed:
		h.Shut()
		return err
	case <-time.After(closeWithin):
		h.Shut()
		return fmt.Errorf("the disk has not taken everything within %v", time.Since(began).Round(time.Millisecond))
	}
}

// Shut ends the writing at once, as far as the disk lets it: what was added and not
// written is lost.
func (h *History) Shut() { h.fs.shut(closeWithin) }

// flush writes what there is of all terminals. It waits for the disk of none before it
// has begun with all.
func (h *History) flush() error {
	writers := h.live()
	errs := make([]error, len(writers))
	var all sync.WaitGroup
	for i, w := range writers {
		all.Go(func() { errs[i] = w.flush() })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (h *History) closeFiles() (err error) {
	for _, w := range h.live() {
		err = errors.Join(err, w.close())
	}
	return errors.Join(err, h.list.close())
}

// Terminal begins the history of a terminal or, if it has one, goes on with it: then
// Run tells what is known already.
func (h *History) Terminal(r Run) (*Writer, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.Command != 0 {
		return nil, fmt.Errorf("run %s is a command, not a terminal", r.ID)
	}
	if w := h.writer(r.ID); w != nil {
		return w, nil
	}
	w := &Writer{h: h, id: r.ID, run: r, end: r.Start}
	if h.off() {
		return w, nil
	}
	err := w.goOn()
	h.mu.Lock()
	h.writers[r.ID] = w
	h.mu.Unlock()
	return w, errors.Join(err, h.Put(w.run))
}

// goOn finds what an earlier daemon has written.
func (w *Writer) goOn() error {
	if old, err := w.h.list.find(w.id); err == nil && old.Running() {
		w.run, w.end = old, max(w.end, old.Start) // text before was forgotten
	}
	entries, err := w.h.fs.List(w.id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has printed nothing
	}
	if err != nil {
		return err
	}
	w.made = true
	for _, e := range entries {
		if off, ok := parseSegmentName(e.Name); ok && !e.Dir {
			w.segments = append(w.segments, segment{off: off, bytes: e.Size})
		} else if e.Name == notesName {
			w.noted = e.Size
		}
	}
	for i := range w.segments {
		data, err := w.h.readSegment(w.id, w.segments[i].off)
		if err != nil {
			return err
		}
		for hd := range headers(data) {
			w.segments[i].text += int64(hd.text)
			w.end = max(w.end, hd.off+int64(hd.text))
		}
	}
	if n := len(w.segments); n > 0 { // its end may be torn, its frames are small
		w.toJoin = append(w.toJoin, w.segments[n-1].off)
	}
	return w.h.notes(w.id, maxOffset, func(n Note, _ []byte) {
		if n.Kind == NoteForgot {
			w.end = max(w.end, n.Off)
		}
	})
}

// Put adds a newer record of a run, of whose terminal there is a Writer or a record.
func (h *History) Put(r Run) error {
	if h.off() {
		return nil
	}
	if err := r.check(); err != nil {
		return err
	}
	line, err := r.encode()
	if err != nil {
		return err
	}
	fresh := false
	if w := h.writer(r.Terminal); w != nil {
		w.mu.Lock()
		if r.Command == 0 {
			w.run = r
		}
		fresh = r.Command >= w.commands
		w.commands = max(w.commands, r.Command+1)
		w.mu.Unlock()
	} else if _, err := h.list.find(r.ID); err != nil {
		return err // forgotten meanwhile
	}
	if err = h.putLine(line, fresh); err != nil {
		h.failed(err)
	}
	return err
}

func (h *History) putLine(line []byte, fresh bool) error {
	if err := h.prepare(); err != nil {
		return err
	}
	size, grown, err := h.list.put(line, fresh)
	h.mu.Lock()
	h.bytes += roundUp(size) - roundUp(size-grown)
	h.mu.Unlock()
	return err
}

func (h *History) writer(terminal string) *Writer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writers[terminal]
}

// Run returns the newest record of a run.
func (h *History) Run(id string) (Run, error) { return h.list.find(id) }

// List returns the runs that match, newest first: the order is that of their beginnings.
func (h *History) List(q Query) iter.Seq[Run] {
	return h.list.newest(q.Matches, q.might())
}

// Sync makes everything that was written before last through a loss of power, and removes
// what need not be kept any more. It is for one second after something was written, and
// at least for once an hour. A second call waits for the first one.
func (h *History) Sync(ctx context.Context) error {
	if h.off() {
		return nil
	}
	if err := h.take(ctx); err != nil {
		return err
	}
	defer h.leave()
	began := time.Now()
	h.mu.Lock()
	h.began = began
	h.mu.Unlock()
	err := errors.Join(h.syncWriters(), h.syncNames(), h.list.sync(), h.tidy())
	h.mu.Lock()
	err = errors.Join(err, h.failure)
	h.failure = nil
	h.took, h.began = time.Since(began), time.Time{}
	h.mu.Unlock()
	h.report(err)
	return err
}

// syncWriters makes what terminals have written last. Then it tidies their files, and
// ends the writing for those that have ended.
func (h *History) syncWriters() (err error) {
	writers := h.live()
	joins := make([]func() (bool, error), len(writers))
	for i, w := range writers {
		var e error
		joins[i], e = w.sync()
		err = errors.Join(err, e)
	}
	for i, w := range writers {
		done, e := joins[i]()
		err = errors.Join(err, e)
		if done {
			h.mu.Lock()
			delete(h.writers, w.id)
			h.mu.Unlock()
		}
	}
	return err
}

// live returns the writers.
func (h *History) live() []*Writer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.writers))
}

// take waits for its turn.
func (h *History) take(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *History) leave() { <-h.turn }

// failed notes for the next round that something could not be written.
func (h *History) failed(err error) {
	h.mu.Lock()
	h.failure = err
	h.mu.Unlock()
}

// report tells whether the history can be written, if that has changed.
func (h *History) report(err error) {
	trouble := ""
	if err != nil {
		trouble, _, _ = strings.Cut(err.Error(), "\n") // the first of several
	}
	h.mu.Lock()
	changed := trouble != h.trouble
	h.trouble = trouble
	h.mu.Unlock()
	if changed {
		h.opts.Report(trouble)
	}
}

// Status says how the history is.
type Status struct {
	Off     bool
	Runs    int
	Bytes   int64 // on disk
	Oldest  time.Time
	Trouble string // why something cannot be kept; "" if everything can
	Damaged int    // lines of the list that could not be read when it was opened
	// Round is how long the last round of Sync took or, if it is more, how long the one
	// takes that goes on.
	Round time.Duration
}

// Status reads the list.
func (h *History) Status() Status {
	if h.off() {
		return Status{Off: true}
	}
	runs, oldest := h.list.count()
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Status{Runs: runs, Oldest: oldest, Bytes: h.bytes, Trouble: h.trouble, Damaged: h.damaged, Round: h.took}
	if !h.began.IsZero() {
		s.Round = max(s.Round, time.Since(h.began))
	}
	return s
}

// grow adds to the size of a file, and to that of everything.
func (h *History) grow(size *int64, by int64) {
	before := roundUp(*size)
	*size += by
	h.mu.Lock()
	h.bytes += roundUp(*size) - before
	h.mu.Unlock()
}

// block is what most file systems allocate at least, in bytes.
const block = 4 << 10

// roundUp returns what a file or directory of that size takes on disk.
func roundUp(size int64) int64 { return (size + block - 1) / block * block }

// makeDir makes a terminal's directory.
func (h *History) makeDir(terminal string) error {
	if err := h.prepare(); err != nil {
		return err
	}
	if err := h.fs.MakeDir(terminal); err != nil {
		return err
	}
	h.mu.Lock()
	h.names = true
	h.bytes += block
	h.mu.Unlock()
	return nil
}
