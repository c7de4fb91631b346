package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"tether/platform/secret"
)

// Options configures a Log. Path is required.
type Options struct {
	// Path is the current file. Next to it are older ones, PATH.1 being the newest of
	// them, and PATH.head.
	Path string
	// MaxBytes is the size at which a file is full, default 8 MiB.
	MaxBytes int64
	// Keep is how many full files are kept, default 3.
	Keep int
}

// retry is the time after which a log that could not be opened is tried again: a disk
// that fails slowly must not slow everything down.
const retry = time.Second

// Log is a log that is being written. It is safe for concurrent use. Only one process may
// write a log; the daemon's lock sees to that.
type Log struct {
	opts Options

	mu     sync.Mutex // held while files are written, as in any log
	file   *os.File   // nil until the first Append, and after a failure
	beside *os.File   // PATH.head
	size   int64      // of file
	head   Head
	known  bool // head is known
	lost   int64
	tried  time.Time
	err    error // why the last Append failed, nil if it did not
	// headErr is why PATH.head does not match the last record, nil if it does.
	headErr error
	full    bool // the file has its last line
}

// New returns a log. It opens nothing yet, so that a daemon can run without a disk for
// its log.
func New(o Options) *Log {
	o.MaxBytes = cmp.Or(o.MaxBytes, 8<<20)
	o.Keep = cmp.Or(o.Keep, 3)
	return &Log{opts: o, head: start}
}

// Append writes one line with the fields of v, which must encode as a JSON object. A line
// that cannot be written is lost and counted; the next line that can be written reports
// the number.
func (l *Log) Append(v any) error {
	object, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err = l.appendLocked(object); err != nil {
		l.lost++
	}
	l.err = err
	return err
}

// note is a record that the log itself writes.
type note struct {
	Time   time.Time `json:"time"`
	Event  string    `json:"event"`            // "lost" or "rotated"
	Count  int64     `json:"count,omitempty"`  // of lost records
	Oldest int64     `json:"oldest,omitempty"` // number of the oldest record after the rotation
}

func (l *Log) appendLocked(object []byte) error {
	if err := l.openLocked(); err != nil {
		return err
	}
	if l.size >= l.opts.MaxBytes {
		if err := l.rotateLocked(); err != nil {
			return err
		}
	}
	if l.lost > 0 {
		if err := l.noteLocked(note{Event: "lost", Count: l.lost}); err != nil {
			return err
		}
		l.lost = 0
	}
	return l.writeLocked(object)
}

func (l *Log) noteLocked(n note) error {
	n.Time = time.Now().UTC()
	object, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return l.writeLocked(object)
}

// writeLocked writes one record as a whole, or none of it.
func (l *Log) writeLocked(object []byte) error {
	line, next, err := seal(l.head, object)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(line); err != nil {
		if l.cutLocked(l.size) != nil {
			l.closeLocked() // opening it again cuts a half-written line
		}
		return err
	}
	l.size += int64(len(line))
	l.head = next
	l.headErr = l.putHeadLocked()
	return nil
}

// headForm has a fixed length, so that a head is replaced by one write.
const headForm = "%020d %s\n"

func (l *Log) putHeadLocked() error {
	if _, err := l.beside.WriteAt(fmt.Appendf(nil, headForm, l.head.N, l.head.Hash), 0); err != nil {
		return fmt.Errorf("%s.head: %w", l.opts.Path, err)
	}
	return nil
}

// readHead returns the head from the file next to the log. Without one it is the head of
// an empty log.
func readHead(path string) (Head, error) {
	data, err := secret.ReadFile(path + ".head")
	if errors.Is(err, fs.ErrNotExist) {
		return start, nil
	}
	if err != nil {
		return start, err
	}
	var h Head
	if n, err := fmt.Sscanf(string(data), headForm, &h.N, &h.Hash); err != nil || n != 2 || len(h.Hash) != len(origin) || h.N < 0 {
		return start, fmt.Errorf("%s.head does not have its form", path)
	}
	return h, nil
}

// openLocked opens the files and finds the end of the chain, unless they are open
// already.
func (l *Log) openLocked() error {
	if l.file != nil {
		return nil
	}
	now := time.Now()
	if l.err != nil && now.Sub(l.tried) < retry {
		return l.err
	}
	l.tried = now
	file, err := secret.OpenAppend(l.opts.Path)
	if err != nil {
		return err
	}
	beside, err := secret.OpenWrite(l.opts.Path + ".head")
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.beside = file, beside
	if err := l.resumeLocked(); err != nil {
		l.closeLocked()
		return err
	}
	return nil
}

// resumeLocked removes a half-written line and continues where the chain ends: at the
// last line or, if that is later, at the end that this process or PATH.head knows. In the
// latter case lines are missing, and the numbers show it.
func (l *Log) resumeLocked() error {
	last, size, err := lastRecord(l.opts.Path)
	if err != nil {
		return err
	}
	if err := l.cutLocked(size); err != nil {
		return err
	}
	l.size = size
	if !l.known {
		if l.head, err = readHead(l.opts.Path); err != nil {
			l.head = start // Verify reports it
		}
		l.known = true
	}
	if last.N > l.head.N {
		l.head = Head{last.N, last.Hash}
	}
	return nil
}

// cutLocked removes everything behind size. Windows does not truncate a file through an
// append-only handle.
func (l *Log) cutLocked(size int64) error {
	info, err := l.file.Stat()
	if err != nil || info.Size() == size {
		return err
	}
	f, err := secret.OpenWrite(l.opts.Path)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// lastRecord returns the last valid line of the file, zero if there is none, and the size
// of the file up to its last newline.
func lastRecord(path string) (Record, int64, error) {
	f, err := secret.OpenRead(path)
	if err != nil {
		return Record{}, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Record{}, 0, err
	}
	from := max(0, info.Size()-2*maxRecord)
	tail, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return Record{}, 0, err
	}
	end := lastNewline(tail)
	if end < 0 {
		return Record{}, 0, nil // no line, or one that this package did not write
	}
	r, _ := Parse(tail[lastNewline(tail[:end])+1 : end]) // zero if it was changed
	return r, from + int64(end) + 1, nil
}

func lastNewline(p []byte) int {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '\n' {
			return i
		}
	}
	return -1
}

// rotateLocked begins a new file. The note about the oldest line is written before
// anything is removed.
func (l *Log) rotateLocked() error {
	if !l.full {
		if err := l.noteLocked(note{Event: "rotated", Oldest: l.oldestAfter()}); err != nil {
			return err
		}
		l.full = true
	}
	l.closeLocked() // some systems do not rename open files
	for i := l.room(); i > 0; i-- {
		if err := os.Rename(nth(l.opts.Path, i-1), nth(l.opts.Path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	l.full = false
	return l.openLocked()
}

// room returns the lowest number that no older file has; a rotation moves only the files
// below it. So a rotation after one that failed half way continues it, and removes no
// further file.
func (l *Log) room() int {
	for i := 1; i < l.opts.Keep; i++ {
		if _, err := os.Lstat(nth(l.opts.Path, i)); errors.Is(err, fs.ErrNotExist) {
			return i
		}
	}
	return l.opts.Keep
}

// nth returns the name of the n-th file before the current one.
func nth(path string, n int) string {
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, n)
}

// oldestAfter returns the number of the oldest line that a rotation leaves.
func (l *Log) oldestAfter() int64 {
	for i := l.opts.Keep - 1; i >= 0; i-- {
		if r, ok := firstRecord(nth(l.opts.Path, i)); ok {
			return r.N
		}
	}
	return 1
}

func (l *Log) closeLocked() {
	if l.file != nil {
		l.file.Close()
		l.beside.Close()
	}
	l.file, l.beside = nil, nil
}

// Head returns the end of the chain as far as this process knows it.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// Trouble returns the reason for which the last record could not be written, nil if it
// was written, and the number of lost records that the log does not report yet.
func (l *Log) Trouble() (lost int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, errors.Join(l.err, l.headErr)
}

// Close closes the files. Append opens them again.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeLocked()
	return nil
}
