package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"tether/platform/secret"
)

// maxLog bounds the log file in bytes; with the one before it, twice that is
// kept.
const maxLog = 5 << 20

// logRetry is how often a log that cannot be opened is tried again.
const logRetry = 10 * time.Second

// logFile is a file of bounded size. When it is full it becomes NAME.1, in
// place of the one before, and begins anew. What cannot be written is lost: a
// full disk ends no daemon, and says so in status.
type logFile struct {
	path   string
	max    int64
	report func(trouble string) // "" when there is none any more

	mu    sync.Mutex
	file  *os.File // nil while it cannot be opened
	size  int64
	torn  bool      // the last line is not whole
	tried time.Time // when opening it failed last
	bad   bool      // trouble was reported
}

// openLog opens the log, or one that tries again later if the system does not
// let it. Its errors say that the file is not this user's alone: what is written
// to it might be read or changed by others.
func openLog(path string, max int64, report func(trouble string)) (*logFile, error) {
	l := &logFile{path: path, max: max, report: report}
	err := l.open()
	if err != nil && !isTrouble(err) {
		return nil, err
	}
	l.told(err)
	return l, nil
}

// isTrouble tells what the system does not let us do, such as for a full disk,
// from what should not be done, such as writing through a link.
func isTrouble(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}

func (l *logFile) open() error {
	f, err := secret.OpenAppend(l.path)
	if err != nil {
		l.tried = time.Now()
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends one whole line. It never fails: there is nobody who could do
// anything about it.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told(l.write(line))
	return len(line), nil
}

func (l *logFile) write(line []byte) error {
	if l.file == nil {
		if time.Since(l.tried) < logRetry {
			return errLogClosed
		}
		if err := l.open(); err != nil {
			return err
		}
	}
	if l.size > 0 && l.size+int64(len(line)) > l.max {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	if l.torn {
		if _, err := l.file.Write([]byte("\n")); err != nil {
			return err
		}
		l.torn, l.size = false, l.size+1
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	l.torn = n > 0 && n < len(line)
	return err
}

// errLogClosed is trouble that was reported when it began.
var errLogClosed = errors.New("the log is not open")

// told reports that there is trouble, or that there is none any more.
func (l *logFile) told(err error) {
	switch {
	case err == nil && l.bad:
		l.report("")
	case err != nil && !errors.Is(err, errLogClosed):
		l.report(fmt.Sprintf("cannot write the log; events are missing from it until that is repaired: %v", err))
	}
	l.bad = err != nil
}

func (l *logFile) rotate() error {
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return err
	}
	old := l.file
	l.file, l.torn = nil, false
	return errors.Join(old.Close(), l.open())
}

// Close closes the file.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
