package term

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"tether/vocab"
)

// memory keeps what all terminals of a pool retain within one bound. When the sum exceeds
// the bound, holders stop keeping exited terminals, then exited terminals lose their
// oldest output, then the terminals that keep the most. No child is held for this, and a
// reader that loses its place is told of the gap, as always.
type memory struct {
	bound int64        // bytes; set at construction
	used  atomic.Int64 // sum of all share.charged

	// trimming is held while terminals are trimmed, under no other lock. Pool.mu and
	// Terminal.mu are taken under it.
	trimming sync.Mutex
}

func (m *memory) over() bool { return m.used.Load() > m.bound }

// share is a terminal's part of the sum. Guarded by the terminal's mutex.
type share struct {
	charged  int64 // bytes
	released bool  // the terminal was removed from the pool: it does not count any more, and its timers stay stopped
}

// chargeLocked updates the terminal's part of the sum. It reports whether the caller has
// to call Pool.trim after it has released its locks.
func (t *Terminal) chargeLocked() bool {
	now := int64(t.stream.cost() + t.commands.lineBytes + t.lending.redaction.cost() + t.keptLocked())
	grown := now - t.share.charged
	if grown == 0 || t.share.released {
		return false
	}
	t.share.charged = now
	return t.pool.memory.used.Add(grown) > t.pool.memory.bound && grown > 0
}

// keptLocked returns how many bytes of an exited terminal its holder keeps for the next
// daemon.
func (t *Terminal) keptLocked() int {
	if t.ending.exit == nil || !t.ending.kept {
		return 0
	}
	n := int(min(t.stream.log.End(), int64(HolderLogBytes(t.pool.opts.LogBytes))))
	for _, k := range t.stream.oldest.kept {
		n += k.cost()
	}
	return n
}

// trim makes the terminals keep less until all fit the bound, or each keeps the minimum.
func (p *Pool) trim() {
	p.memory.trimming.Lock()
	defer p.memory.trimming.Unlock()
	if !p.memory.over() {
		return // another goroutine has done it meanwhile
	}
	exited, running := p.holdings()
	for _, h := range exited {
		if p.memory.over() {
			h.t.stopKeeping()
		}
	}
	for _, h := range exited {
		if p.memory.over() {
			h.t.setLimit(minLogBytes)
		}
	}
	for level := int64(maxLogBytes); level >= minLogBytes && p.memory.over(); level /= 2 {
		for i := range running {
			if h := &running[i]; h.charged > level && p.memory.over() {
				h.charged = h.t.setLimit(int(level))
			}
		}
	}
}

// holding is how much one terminal keeps.
type holding struct {
	t       *Terminal
	charged int64
}

// holdings returns the exited terminals, the oldest exit first, and the running ones, the
// largest first.
func (p *Pool) holdings() (exited, running []holding) {
	ended := map[*Terminal]*vocab.Exit{}
	for _, t := range p.all() {
		t.mu.Lock()
		h := holding{t, t.share.charged}
		if ended[t] = t.ending.exit; t.ending.exit != nil {
			exited = append(exited, h)
		} else {
			running = append(running, h)
		}
		t.mu.Unlock()
	}
	slices.SortFunc(exited, func(a, b holding) int { return ended[a.t].At.Compare(ended[b.t].At) })
	slices.SortFunc(running, func(a, b holding) int { return cmp.Compare(b.charged, a.charged) })
	return exited, running
}

// relax lets running terminals keep the configured amount again. It is called after a
// terminal was removed from the pool. If there is still no room for the others, trim is
// called again.
func (p *Pool) relax() {
	p.memory.trimming.Lock()
	defer p.memory.trimming.Unlock()
	if p.memory.over() {
		return
	}
	_, running := p.holdings()
	for _, h := range running {
		h.t.relax()
	}
}

func (t *Terminal) relax() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stream.log.Limit() < t.pool.opts.LogBytes {
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
	limit, kept := t.stream.log.Limit(), t.pool.opts.LogBytes
	behind := t.laggingLocked()
	switch m := &t.pool.memory; {
	case limit >= kept && limit < lagStretch*kept && behind > int64(limit/2) && t.ending.exit == nil && m.used.Load() < m.bound/2:
		t.stream.log.SetLimit(2 * limit)
	case limit >= 2*kept && behind < int64(kept/paceStep):
		t.setLimitLocked(kept)
	}
}

// laggingLocked returns how far behind the slowest reader is that may slow the child only
// a little, as weight in the log.
func (t *Terminal) laggingLocked() int64 {
	most := int64(0)
	for r := range t.readers.open {
		if r.lags {
			most = max(most, t.stream.weight(max(r.pos, t.stream.log.Start())), (t.stream.firstMark+int64(t.stream.marks.len())-r.mark)*markCost)
		}
	}
	return most
}

// setLimit sets the bound of the log and of the state that depends on it, in bytes, and
// returns how much the terminal keeps now. It drops a screen that takes more than the
// bound.
func (t *Terminal) setLimit(limit int) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stream.setLimit(min(limit, t.pool.opts.LogBytes)) // which advances the screen
	t.stream.oldest.giveUp(limit)
	return t.setLimitLocked(min(limit, t.pool.opts.LogBytes))
}

func (t *Terminal) setLimitLocked(limit int) int64 {
	t.stream.setLimit(limit)
	t.boundLocked(noOffset)
	t.commands.bound(t.stream.log.Limit())
	t.stream.shrink()
	t.chargeLocked()
	t.wakeLocked()
	return t.share.charged
}

// release subtracts a terminal that was removed from the pool.
func (t *Terminal) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pool.memory.used.Add(-t.share.charged)
	t.share.charged, t.share.released = 0, true
	if t.lending.expiry != nil {
		t.lending.expiry.Stop()
	}
	t.lending.redaction.stop()
}

// Memory returns how many bytes all terminals retain, and how many they may.
func (p *Pool) Memory() (used, bound int64) { return p.memory.used.Load(), p.memory.bound }
