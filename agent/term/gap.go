package term

import (
	"errors"
	"time"

	"tether/shellint"
)

// gapError is an error of HolderPTY.Read.
type gapError interface {
	error
	Gap() (from, to int64)
}

// gap records that output is missing, if that is what err says.
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

// beginLocked makes the log begin anew at a raw and a text offset: nothing
// before is kept. Readers that stand before it are told.
func (t *Terminal) beginLocked(raw, text int64) {
	t.intake.scanner = shellint.NewScannerAt(t.origin.scanning, raw)
	t.stream.begin(raw, text)
	if v := t.lending.redaction; v != nil {
		v.begin(t.lending.rules, &t.stream)
	}
	t.boundLocked(keepNothing)
}
