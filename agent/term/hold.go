package term

import "time"

// hold waits while appending n bytes would drop what a holding reader has
// not read yet, at most for the pool's stall time.
func (t *Terminal) hold(n int) {
	if !t.blocked(n) {
		return
	}
	stall := time.NewTimer(t.pool.opts.Stall)
	defer stall.Stop()
	for t.blocked(n) {
		select {
		case <-t.audience.room:
		case <-t.life.killed:
			return
		case <-t.life.leaving: // the next daemon reads it again
			return
		case <-stall.C:
			t.mu.Lock()
			for r := range t.audience.readers {
				r.stalled = r.stalled || t.blocksLocked(r, n)
			}
			t.audience.giveUp(t.stream.log.End()+int64(n), t.stream.log.Limit())
			t.needLocked()
			t.mu.Unlock()
			return
		}
	}
}

func (t *Terminal) blocked(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.adoption.underWay() {
		return false // what the holder has is read to its end
	}
	for r := range t.audience.readers {
		if t.blocksLocked(r, n) {
			return true
		}
	}
	return t.audience.absent(t.stream.log.End()+int64(n), t.stream.log.Limit())
}

// blocksLocked reports whether r holds the child back from n more bytes.
func (t *Terminal) blocksLocked(r *Reader, n int) bool {
	if !r.holds {
		return false
	}
	behind := t.stream.log.End() + int64(n) - r.pos
	if r.stalled {
		r.stalled = behind > int64(t.stream.log.Limit()/2)
		return false
	}
	return behind > int64(t.stream.log.Limit())
}
