package term

import (
	"errors"
	"time"

	"tether/agent/ring"
	"tether/shellint"
)

// gapError is an error of Held.Read.
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
	t.scanner.Close(&t.result)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recordLocked(time.Now(), true)
	t.lost += to - from
	t.beginLocked(to, t.cuts.textAt(from)+to-from)
	t.noteLocked()
	t.caughtLocked()
	t.wakeLocked()
	return true
}

// beginLocked makes the log begin anew at a raw and a text offset: nothing
// before is kept. Readers that stand before it are told.
func (t *Terminal) beginLocked(raw, text int64) {
	t.scanner = shellint.NewScannerAt(t.scanning, raw)
	t.log = ring.NewAt(t.log.Limit(), raw)
	t.cuts = cutList{baseRaw: raw, baseText: text}
	t.decided, t.texted, t.seen, t.atRest = raw, raw, raw, true
	if t.veil != nil {
		t.drawLocked()
	}
	t.boundLocked()
}
