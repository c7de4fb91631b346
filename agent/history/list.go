package history

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"iter"
	"sync"
	"time"
)

// The list of all runs is a file of JSON lines that is only appended to. The last line
// about a run is its record; the first one says where the run belongs in the order of
// their beginnings, which no clock decides. When most lines are stale, the file is
// written anew beside, and renamed.
const (
	listName   = "runs.jsonl"
	newExt     = ".new"     // of a file that is written anew
	damagedExt = ".damaged" // of what is set aside
)

// Bounds of the list.
const (
	staleLines = 1000      // so many stale lines are never worth a rewriting
	window     = 256 << 10 // bytes that are read at once
)

type list struct {
	fs FS

	mu    sync.Mutex // held while the file is written
	file  File       // nil until the first line, and after a failure
	size  int64
	lines int  // in the file
	live  int  // runs, as far as known
	dirty bool // written since the last Sync
	names bool // the file's name is not synced
	torn  bool // the file does not end with a newline

	naming sync.RWMutex // held while the file is replaced
	anew   int          // how often it was
}

// open counts the lines.
func (l *list) open() (idx index, err error) {
	src, size, err := l.source()
	if err != nil || src == nil {
		return idx, err
	}
	defer src.Close()
	idx, err = readIndex(src, size)
	l.size, l.lines, l.live, l.torn = size, idx.lines, len(idx.places), idx.torn
	return idx, err
}

// source opens the file for reading; nil if there is none.
func (l *list) source() (Source, int64, error) {
	src, err := l.fs.Open(listName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	size, err := src.Size()
	if err != nil {
		src.Close()
		return nil, 0, err
	}
	return src, size, nil
}

// put appends a line. It returns the file's size, and by how much it has grown.
func (l *list) put(line []byte, fresh bool) (size, grown int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		file, err := l.fs.Append(listName)
		if err != nil {
			return 0, 0, err
		}
		l.file, l.names = file, true
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	l.dirty = l.dirty || n > 0
	if err != nil {
		l.torn = l.torn || n > 0
		return l.size, int64(n), err
	}
	l.torn = false
	l.lines++
	if fresh {
		l.live++
	}
	return l.size, int64(n), nil
}

// sync makes what was written last.
func (l *list) sync() error {
	l.mu.Lock()
	file, dirty, names := l.file, l.dirty, l.names
	l.dirty, l.names = false, false
	l.mu.Unlock()
	var err error
	if dirty && file != nil {
		err = file.Sync()
	}
	if names && err == nil {
		err = l.fs.SyncDir(".")
	}
	if err != nil {
		l.mu.Lock()
		l.dirty, l.names = l.dirty || dirty, l.names || names
		l.mu.Unlock()
	}
	return err
}

func (l *list) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// stale reports whether most lines say what is not true any more.
func (l *list) stale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines > 2*l.live+staleLines
}

// rewrite keeps the newest lines about the runs for which keep returns true. It returns
// by how much less the file takes. Lines can be added meanwhile; the next Sync makes them
// last.
func (l *list) rewrite(keep func(*Run) bool) (freed int64, err error) {
	was, written, lines, err := l.writeNew(keep)
	if err != nil || was == 0 {
		return 0, err
	}
	l.mu.Lock()
	freed, err = l.replaceLocked(keep, was, written, lines)
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	// Lines that follow must not be lost with the new name.
	return freed, l.fs.SyncDir(".")
}

// writeNew writes the list anew beside, and syncs that. was is the size of the old one.
func (l *list) writeNew(keep func(*Run) bool) (was, written int64, lines int, err error) {
	l.mu.Lock()
	src, was, err := l.source()
	l.mu.Unlock()
	if err != nil || src == nil {
		return 0, 0, 0, err
	}
	defer src.Close()
	idx, err := readIndex(src, was)
	if err != nil {
		return 0, 0, 0, err
	}
	if err := l.fs.Remove(listName + newExt); err != nil {
		return 0, 0, 0, err
	}
	file, err := l.fs.Append(listName + newExt)
	if err != nil {
		return 0, 0, 0, err
	}
	var buf []byte
	flush := func() {
		if err == nil {
			var n int
			n, err = file.Write(buf)
			written, buf = written+int64(n), buf[:0]
		}
	}
	w := lineWindow{src: src, size: was}
	for _, p := range idx.places {
		line, e := w.line(p)
		if err = errors.Join(err, e); err != nil {
			break
		}
		if kept(line, keep) {
			lines++
			if buf = append(append(buf, line...), '\n'); len(buf) >= window {
				flush()
			}
		}
	}
	flush()
	if err == nil {
		err = file.Sync()
	}
	return was, written, lines, errors.Join(err, file.Close())
}

func kept(line []byte, keep func(*Run) bool) bool {
	r, err := decodeRun(line)
	return err == nil && keep(&r)
}

// replaceLocked replaces the list by the new one, with the lines that were added since it
// had was bytes.
func (l *list) replaceLocked(keep func(*Run) bool, was, written int64, lines int) (freed int64, err error) {
	added, n, err := l.addTailLocked(keep, was)
	if err != nil {
		return 0, err
	}
	if l.file != nil { // some systems do not replace open files
		l.file.Close()
		l.file = nil
	}
	if err := l.rename(); err != nil {
		return 0, err
	}
	written += added
	lines += n
	freed = roundUp(l.size) - roundUp(written)
	l.size, l.lines, l.live, l.torn, l.dirty = written, lines, lines, false, added > 0
	if added > 0 {
		l.names = true
		l.file, err = l.fs.Append(listName) // for the next Sync
	}
	return freed, err
}

func (l *list) rename() error {
	l.naming.Lock()
	defer l.naming.Unlock()
	l.anew++
	return l.fs.Rename(listName+newExt, listName)
}

func (l *list) addTailLocked(keep func(*Run) bool, was int64) (added int64, lines int, err error) {
	src, size, err := l.source()
	if err != nil || src == nil {
		return 0, 0, err
	}
	defer src.Close()
	if size <= was {
		return 0, 0, nil
	}
	var tail []byte
	for line := range linesOf(io.NewSectionReader(src, was, size-was), size-was, &err) {
		if line.whole && kept(line.text, keep) {
			tail = append(append(tail, line.text...), '\n')
			lines++
		}
	}
	if err != nil || len(tail) == 0 {
		return 0, 0, err
	}
	file, err := l.fs.Append(listName + newExt)
	if err != nil {
		return 0, 0, err
	}
	n, err := file.Write(tail)
	return int64(n), lines, errors.Join(err, file.Close())
}

// place is where the newest line about a run is.
type place struct {
	off int64
	len int32
}

// index has the places of all runs, in the order in which they began.
type index struct {
	places  []place
	lines   int
	damaged int
	torn    bool
	seed    maphash.Seed
	known   map[uint64]int32 // places by hashes of ids
}

func (idx *index) has(id string) bool {
	if len(idx.known) == 0 { // without a list there is no seed
		return false
	}
	_, ok := idx.known[maphash.String(idx.seed, id)]
	return ok
}

const idPrefix = `{"id":"`

// lineID returns the id in a line that is whole, without decoding it.
func lineID(line []byte) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(idPrefix))
	if !ok {
		return nil, false
	}
	id, _, ok := bytes.Cut(rest, []byte{'"'})
	return id, ok && isWhole(line)
}

// readIndex reads a list once. Lines that are no records are passed over.
func readIndex(src io.ReaderAt, size int64) (index, error) {
	return readIndexAs(src, size, maphash.MakeSeed())
}

func readIndexAs(src io.ReaderAt, size int64, seed maphash.Seed) (idx index, err error) {
	idx.seed, idx.known = seed, map[uint64]int32{}
	for line := range linesOf(src, size, &err) {
		idx.torn = !line.whole
		if len(line.text) == 0 {
			continue
		}
		id, ok := lineID(line.text)
		if !ok || !line.whole {
			idx.damaged++
			continue
		}
		idx.lines++
		at := place{line.off, int32(len(line.text))}
		hash := maphash.Bytes(idx.seed, id)
		if i, ok := idx.known[hash]; ok {
			idx.places[i] = at
			continue
		}
		idx.known[hash] = int32(len(idx.places))
		idx.places = append(idx.places, at)
	}
	return idx, err
}

// textLine is a line of a file without its newline. It is not whole at the end of a file
// that has no newline there, and if it is longer than maxLine.
type textLine struct {
	off   int64
	text  []byte // until the next line
	whole bool
}

// linesOf reads the lines of a file.
func linesOf(src io.ReaderAt, size int64, failed *error) iter.Seq[textLine] {
	return func(yield func(textLine) bool) {
		buf := make([]byte, 0, min(window, size))
		var at int64 // of buf
		long := false
		for at < size {
			n, err := src.ReadAt(buf[len(buf):min(int64(cap(buf)), size-at)], at+int64(len(buf)))
			buf = buf[:len(buf)+n]
			if err != nil && (err != io.EOF || n == 0) {
				*failed = err
				return
			}
			used := 0
			for {
				i := bytes.IndexByte(buf[used:], '\n')
				if i < 0 {
					break
				}
				if !yield(textLine{at + int64(used), buf[used : used+i], !long && i < maxLine}) {
					return
				}
				used, long = used+i+1, false
			}
			last := at+int64(len(buf)) >= size
			if last && used < len(buf) {
				yield(textLine{at + int64(used), buf[used:], false})
			}
			if last {
				return
			}
			if len(buf)-used > maxLine { // no record is that long
				used, long = len(buf), true
			}
			at += int64(used)
			buf = buf[:copy(buf, buf[used:])]
		}
	}
}

// lineWindow reads lines that are near to each other with few reads.
type lineWindow struct {
	src  io.ReaderAt
	size int64
	buf  []byte
	at   int64
}

// line returns a line, until the next call.
func (w *lineWindow) line(p place) ([]byte, error) {
	before := w.at
	if p.off < w.at || p.off+int64(p.len) > w.at+int64(len(w.buf)) {
		if w.at = p.off; w.buf == nil || p.off < before { // backwards
			w.at = max(0, p.off+int64(p.len)-window)
		}
		if w.buf == nil {
			w.buf = make([]byte, min(window+maxLine, w.size))
		}
		n, err := w.src.ReadAt(w.buf[:cap(w.buf)], w.at)
		w.buf = w.buf[:n]
		if p.off+int64(p.len) > w.at+int64(n) {
			return nil, fmt.Errorf("%s: %w", listName, errors.Join(err, io.ErrUnexpectedEOF))
		}
	}
	return w.buf[p.off-w.at:][:p.len], nil
}

// all calls visit with the runs, oldest first, and with the time before which each did
// not end, whatever the clock said then.
func (l *list) all(now time.Time, visit func(r *Run, notBefore time.Time)) error {
	src, size, err := l.source()
	if err != nil || src == nil {
		return err
	}
	defer src.Close()
	idx, err := readIndex(src, size)
	if err != nil {
		return err
	}
	var latest time.Time
	w := lineWindow{src: src, size: size}
	for _, p := range idx.places {
		line, err := w.line(p)
		if err != nil {
			return err
		}
		r, err := decodeRun(line)
		if err != nil {
			continue
		}
		if r.Started.After(latest) && r.Started.Before(now) {
			latest = r.Started
		}
		visit(&r, latest)
	}
	return nil
}

// count returns the number of runs, and when the oldest began.
func (l *list) count() (runs int, oldest time.Time) {
	src, size, err := l.source()
	if err != nil || src == nil {
		return 0, oldest
	}
	defer src.Close()
	idx, err := readIndex(src, size)
	if err != nil || len(idx.places) == 0 {
		return 0, oldest
	}
	w := lineWindow{src: src, size: size}
	if line, err := w.line(idx.places[0]); err == nil {
		if r, err := decodeRun(line); err == nil {
			oldest = r.Started
		}
	}
	return len(idx.places), oldest
}

// find returns the newest record of a run.
func (l *list) find(id string) (Run, error) {
	src, end, err := l.source()
	if err != nil {
		return Run{}, err
	}
	if src == nil {
		return Run{}, ErrUnknownRun
	}
	defer src.Close()
	needle := []byte(idPrefix + id + `"`)
	buf := make([]byte, min(window+maxLine, end))
	for end > 0 {
		at := max(0, end-window)
		n, err := src.ReadAt(buf, at) // and as much of the next part as a line may need
		if n == 0 {
			return Run{}, err
		}
		var found Run
		for i := 0; ; i++ { // bytes.Index is several times as fast as LastIndex
			next := bytes.Index(buf[i:n], needle)
			if next < 0 {
				break
			}
			i += next
			line, _, _ := bytes.Cut(buf[i:n], []byte{'\n'})
			if r, err := decodeRun(line); err == nil && r.ID == id && isWhole(line) {
				found = r
			}
		}
		if found.ID != "" {
			return found, nil
		}
		end = at
	}
	return Run{}, ErrUnknownRun
}
