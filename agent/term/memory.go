package term

import (
	"slices"

	"tether/record"
	"tether/vocab"
)

// All terminals of a pool keep together at most Options.TotalLogBytes. When the sum
// exceeds that, holders stop keeping exited terminals, then exited terminals lose their
// oldest output, then the terminals that keep the most. No child is held for this, and a
// reader that loses its place is told of the gap, as always.

// share is a terminal's part of the sum. Guarded by the terminal's mutex.
type share struct {
	record.Share
	released bool // the terminal was removed from the pool: it does not count any more, and its timers stay stopped
}

// chargeLocked updates the terminal's part of the sum.
func (t *Terminal) chargeLocked() {
	t.share.Set(int64(t.log.Cost() + t.keptLocked()))
}

// keptLocked returns how many bytes of an exited terminal its holder keeps for the next
// daemon.
func (t *Terminal) keptLocked() int {
	if t.ending.exit == nil || !t.ending.kept {
		return 0
	}
	n := int(min(t.log.End(), int64(HolderLogBytes(t.pool.opts.LogBytes))))
	for _, k := range t.log.Kept() {
		n += k.Cost()
	}
	return n
}

// trim makes the terminals keep less until all fit the bound, or each keeps the minimum.
func (p *Pool) trim() {
	if !p.memory.Over() {
		return // another goroutine has done it meanwhile
	}
	var exited, running []record.Keeper
	ended := map[record.Keeper]vocab.Exit{}
	for _, t := range p.all() {
		if i := t.Info(); i.Exit != nil {
			exited = append(exited, t)
			ended[t] = *i.Exit
		} else {
			running = append(running, t)
		}
	}
	slices.SortFunc(exited, func(a, b record.Keeper) int { return ended[a].At.Compare(ended[b].At) })
	var first []record.Keeper
	for _, k := range exited {
		first = append(first, keptOutput{k.(*Terminal)})
	}
	p.memory.Squeeze(append(first, exited...), running, minLogBytes)
}

// keptOutput is what the holder of an exited terminal keeps for the next daemon. It is a
// [record.Keeper].
type keptOutput struct{ t *Terminal }

// Held returns 0: the terminal counts what its holder keeps.
func (k keptOutput) Held() int64 { return 0 }

// Shrink lets the holder end.
func (k keptOutput) Shrink(int64) { k.t.stopKeeping() }

// relax lets running terminals keep the configured amount again. It is called after a
// terminal was removed from the pool. If there is still no room for the others, trim is
// called again.
func (p *Pool) relax() {
	if p.memory.Over() {
		return
	}
	for _, t := range p.all() {
		t.relax()
	}
}

func (t *Terminal) relax() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending.exit == nil && t.log.Limit() < t.pool.opts.LogBytes {
		t.setLimitLocked(t.pool.opts.LogBytes)
	}
}

// lagStretch is the factor by which a terminal may exceed the configured amount for
// readers that may slow the child only a little and keep reading.
const lagStretch = 4

// stretchLocked makes the log larger when such a reader has moved and is behind by half
// of it, and smaller when all such readers have caught up. The log does not grow for a
// reader that has stopped reading, nor when half of the pool's memory is in use.
func (t *Terminal) stretchLocked() {
	limit, kept := t.log.Limit(), t.pool.opts.LogBytes
	behind := t.log.Lag()
	switch used, most := t.pool.memory.Used(); {
	case limit >= kept && limit < lagStretch*kept && behind > int64(limit/2) && t.ending.exit == nil && used < most/2:
		t.log.SetLimit(2 * limit)
	case limit >= 2*kept && behind < int64(kept/paceStep):
		t.setLimitLocked(kept)
	}
}

// Held returns how many bytes the terminal keeps.
func (t *Terminal) Held() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.share.Held()
}

// Shrink bounds the log, and the state that depends on it, to so many bytes. It drops a
// screen that takes more than the bound.
func (t *Terminal) Shrink(to int64) {
	limit := minLogBytes
	for 2*limit <= min(int(to), t.pool.opts.LogBytes) {
		limit *= 2 // a log is as large as a power of two
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log.SetLimit(limit) // which advances the screen
	t.log.GiveUp(limit)
	t.setLimitLocked(limit)
}

func (t *Terminal) setLimitLocked(limit int) {
	t.log.Fit(limit)
	t.chargeLocked()
}

// release subtracts a terminal that was removed from the pool.
func (t *Terminal) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.share.Leave()
	t.share.released = true
	if t.expiry != nil {
		t.expiry.Stop()
	}
	t.log.Stop()
}

// Memory returns how many bytes all terminals retain, and how many they may.
func (p *Pool) Memory() (used, bound int64) { return p.memory.Used() }
