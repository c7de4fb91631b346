package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/localapi"
	"tether/platform/secret"
)

// maxLog bounds the log file in bytes. The file before it is kept, too, so the log takes
// at most twice as much.
const maxLog = 5 << 20

// logRetry is how often a log that cannot be opened is tried again.
const logRetry = 10 * time.Second

// logFile is a file of bounded size. A full one replaces NAME.1, and a new one begins.
// Lines that cannot be written are lost: a full disk does not end the daemon, but status
// reports it.
type logFile struct {
	path   string
	max    int64
	report func(trouble string) // "" ends the fault

	mu    sync.Mutex
	file  *os.File // nil while it cannot be opened
	size  int64
	torn  bool      // the last line is not whole
	tried time.Time // when opening it failed last
	bad   bool      // trouble was reported
}

// openLog opens the log. If the system does not let it, the log that it returns tries
// again later. An error means that the file is not this user's alone, so that others
// might read or change it.
func openLog(path string, max int64, report func(trouble string)) (*logFile, error) {
	l := &logFile{path: path, max: max, report: report}
	err := l.open()
	if err != nil && !isTrouble(err) {
		return nil, err
	}
	l.noteFault(err)
	return l, nil
}

// isTrouble distinguishes faults of the system, such as a full disk, from forbidden
// operations, such as writing through a link.
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

// Write appends one whole line. It never fails: there is nobody who could do anything
// about it.
func (l *logFile) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteFault(l.write(line))
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
		// Windows does not rename a file onto one that somebody reads: until it does,
		// lines go into the present file.
		if err := l.rotate(); err != nil && (l.file == nil || l.size+int64(len(line)) > 2*l.max) {
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

// errLogClosed says that the log could not be opened before; that fault was reported when
// it began.
var errLogClosed = errors.New("the log is not open")

// noteFault reports a fault, or its end.
func (l *logFile) noteFault(err error) {
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

// levels are the possible levels of the log.
var levels = []string{"debug", "info", "warn", "error"}

// leveled is a log whose level changes while it is written to. All loggers of a daemon
// write to one: a logger is copied, and a copy would keep its level.
type leveled struct {
	io.Writer
	level atomic.Int32 // a zerolog.Level
}

// WriteLevel implements zerolog.LevelWriter.
func (l *leveled) WriteLevel(level zerolog.Level, p []byte) (int, error) {
	if level < zerolog.Level(l.level.Load()) {
		return len(p), nil
	}
	return l.Write(p)
}

// LogLevel implements local.Leveler.
func (a *Agent) LogLevel() string { return zerolog.Level(a.leveled.level.Load()).String() }

// SetLogLevel implements local.Leveler.
func (a *Agent) SetLogLevel(name string) error {
	level, err := zerolog.ParseLevel(name)
	if err != nil || !slices.Contains(levels, name) {
		return localapi.BadRequest("log level %.20q must be debug, info, warn or error", name)
	}
	was := a.LogLevel()
	a.leveled.level.Store(int32(min(level, zerolog.InfoLevel))) // so that the change is seen
	a.log.Info().Str("was", was).Str("is", name).Msg("log level")
	a.leveled.level.Store(int32(level))
	return nil
}
