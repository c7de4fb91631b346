package term

import (
	"errors"
	"runtime"
	"runtime/debug"
	"time"

	"tether/shellint"
)

// A Recovery reports a panic caused by a child's output, which is a bug of ours. The
// panic ends neither the daemon nor the terminal: the pending output and the log are
// dropped and shown as a gap, as if they had never been recorded.
type Recovery struct {
	ID    ID
	Bytes int    // length of the output that caused it
	Kind  string // of the panic's value; not its text, which might contain output
	Stack []byte
}

// take calls ingest and recovers from a panic in it. Only pump and takeNow call it.
func (t *Terminal) take(p []byte) {
	t.intake.appended = false
	defer t.recoverOutput(p)
	t.ingest(p)
}

// recoverOutput, deferred, drops all output up to the end of p after a panic and starts
// with a new log. A second panic, in recoverOutput itself, ends the daemon.
func (t *Terminal) recoverOutput(p []byte) {
	v := recover()
	if v == nil {
		return
	}
	s := Recovery{ID: t.id, Bytes: len(p), Kind: kindOf(v), Stack: debug.Stack()}
	t.mu.Lock()
	to := t.log.End()
	if !t.intake.appended {
		to += int64(len(p))
	}
	t.log.AddLost(int64(len(p)))
	t.beginLocked(to, t.log.TextBehind(to))
	t.caughtLocked() // end an adoption, too: otherwise the next daemon would panic at the same output
	t.wakeLocked()
	t.mu.Unlock()
	if f := t.pool.opts.Recovered; f != nil {
		f(s)
	}
}

// kindOf describes a panic without any text from the output.
func kindOf(v any) string {
	if err, ok := v.(runtime.Error); ok {
		return err.Error() // indices and lengths
	}
	return "a broken invariant"
}

// finish calls endOutput and recovers from a panic in it.
func (t *Terminal) finish() {
	t.intake.appended = true
	defer t.recoverOutput(nil)
	t.endOutput()
}

// recoverRedaction, deferred, restarts the redaction after a panic in it. Until the child
// prints again, hosts get no more output.
func (t *Terminal) recoverRedaction() {
	v := recover()
	if v == nil {
		return
	}
	s := Recovery{ID: t.id, Kind: kindOf(v), Stack: debug.Stack()}
	t.mu.Lock()
	t.log.RestartRedaction(t.log.Start())
	t.mu.Unlock()
	if f := t.pool.opts.Recovered; f != nil {
		f(s)
	}
}

// gapError is an error of HolderPTY.Read.
type gapError interface {
	error
	Gap() (from, to int64)
}

// gap records missing output if err reports that; otherwise it returns false.
func (t *Terminal) gap(err error) bool {
	var g gapError
	if !errors.As(err, &g) {
		return false
	}
	from, to := g.Gap()
	t.intake.scanner.Close(&t.intake.result)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordLocked(time.Now(), true)
	t.log.AddLost(to - from)
	t.beginLocked(to, t.log.TextAt(from)+to-from)
	t.noteLocked()
	t.caughtLocked()
	t.wakeLocked()
	return true
}

// beginLocked replaces the log by an empty one that begins at a raw and a text offset.
// Readers before that offset get a LaggedError.
func (t *Terminal) beginLocked(raw, text int64) {
	t.intake.scanner = shellint.NewScannerAt(t.origin.scanning, raw)
	t.log.Begin(raw, text)
}
