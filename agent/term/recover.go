package term

import (
	"errors"
	"runtime"
	"runtime/debug"
	"time"

	"tether/shellint"
)

// A Recovery is a panic caused by a child's output, a bug of ours. It ends neither the daemon nor the terminal: the pending output and the
// log are gone, and shown as a gap, as if they had never been recorded.
type Recovery struct {
	ID    ID
	Bytes int    // that were being read
	Kind  string // of the panic's value, whose text might hold output
	Stack []byte
}

// take is ingest that survives a bug in it. Only pump and takeNow call it.
func (t *Terminal) take(p []byte) {
	t.intake.appended = false
	defer t.recoverOutput(p)
	t.ingest(p)
}

// recoverOutput, deferred, begins anew behind p after a panic. A second panic in here is not survived.
func (t *Terminal) recoverOutput(p []byte) {
	v := recover()
	if v == nil {
		return
	}
	s := Recovery{ID: t.id, Bytes: len(p), Kind: kindOf(v), Stack: debug.Stack()}
	t.mu.Lock()
	to := t.stream.log.End()
	if !t.intake.appended {
		to += int64(len(p))
	}
	t.stream.lost += int64(len(p))
	t.beginLocked(to, t.stream.textBehind(to))
	t.caughtLocked() // the next daemon meets the same bug
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

// finish is endOutput that survives a bug in it.
func (t *Terminal) finish() {
	t.intake.appended = true
	defer t.recoverOutput(nil)
	t.endOutput()
}

// recoverRedaction, deferred, recreates the redaction after a panic in it: hosts wait for the child's next output.
func (t *Terminal) recoverRedaction() {
	v := recover()
	if v == nil {
		return
	}
	s := Recovery{ID: t.id, Kind: kindOf(v), Stack: debug.Stack()}
	t.mu.Lock()
	if v := t.lending.redaction; v != nil {
		v.begin(t.lending.rules, &t.stream)
	}
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

// gap records that output is missing, if err reports that.
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
	t.stream.lost += to - from
	t.beginLocked(to, t.stream.cuts.textAt(from)+to-from)
	t.noteLocked()
	t.caughtLocked()
	t.wakeLocked()
	return true
}

// beginLocked makes the log begin anew at a raw and a text offset: nothing before is kept. Readers that stand before it are told.
func (t *Terminal) beginLocked(raw, text int64) {
	t.intake.scanner = shellint.NewScannerAt(t.origin.scanning, raw)
	t.stream.begin(raw, text)
	if v := t.lending.redaction; v != nil {
		v.begin(t.lending.rules, &t.stream)
	}
	t.boundLocked(keepNothing)
}
