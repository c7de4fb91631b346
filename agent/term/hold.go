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
		case <-t.room:
		case <-t.killed:
			return
		case <-t.leaving: // the next daemon reads it again
			return
		case <-stall.C:
			t.mu.Lock()
			for r := range t.readers {
				r.stalled = r.stalled || t.blocksLocked(r, n)
			}
			t.giveUpLocked(n)
			t.mu.Unlock()
			return
		}
	}
}

func (t *Terminal) isKilled() bool {
	select {
	case <-t.killed:
		return true
	default:
		return false
	}
}

func (t *Terminal) blocked(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.caught != nil {
		return false // what the holder has is read to its end
	}
	for r := range t.readers {
		if t.blocksLocked(r, n) {
			return true
		}
	}
	return t.absentLocked(n)
}

// blocksLocked reports whether r holds the child back from n more bytes.
func (t *Terminal) blocksLocked(r *Reader, n int) bool {
	if !r.holds {
		return false
	}
	behind := t.log.End() + int64(n) - r.pos
	if r.stalled {
		r.stalled = behind > int64(t.log.Limit()/2)
		return false
	}
	return behind > int64(t.log.Limit())
}

// makeRoom tells a waiting pump that a reader moved.
func (t *Terminal) makeRoom() {
	select {
	case t.room <- struct{}{}:
	default:
	}
}
