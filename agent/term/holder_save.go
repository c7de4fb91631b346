package term

import (
	"context"
	"time"
)

// keeper hands to the holder what it is to keep. Its goroutine, saver, exists
// only while there is something. Guarded by the terminal's mutex.
type keeper struct {
	stale   bool          // the record the holder has is not what it should be
	note    []byte        // the newest checkpoint that it does not have
	noteOff int64         // where that is
	running bool          // saver runs
	kept    chan struct{} // closed when what is stale now was kept; made by who waits
	later   *time.Timer   // runs keepLater's end
	noted   int64         // raw offset of the last checkpoint

	keep      int64 // what the holder was told to keep; -1: not known
	keepStale bool  // it was not told yet
}

// keepWithin bounds the wait for a holder in calls that have no context: one
// that was stopped must not stop its terminal's doors.
const keepWithin = time.Second

// keep has the record kept and returns when it is, or ctx ends.
func (t *Terminal) keep(ctx context.Context) error {
	t.mu.Lock()
	if t.holder == nil {
		t.mu.Unlock()
		return nil
	}
	t.staleLocked()
	if t.keeper.kept == nil {
		t.keeper.kept = make(chan struct{})
	}
	kept := t.keeper.kept
	t.mu.Unlock()
	select {
	case <-kept:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// changed has the record kept and tells the pool's watchers.
func (t *Terminal) changed() {
	ctx, cancel := context.WithTimeout(context.Background(), keepWithin)
	defer cancel()
	_ = t.keep(ctx) // then it is kept a little later
	t.pool.changed()
}

// staleLocked begins to keep the record.
func (t *Terminal) staleLocked() {
	t.keeper.stale = true
	t.saveLocked()
}

// keepAfter is how long commands of a shell gather before they are kept.
const keepAfter = 200 * time.Millisecond

// keepLaterLocked has the record kept soon.
func (t *Terminal) keepLaterLocked() {
	k := &t.keeper
	switch {
	case t.holder == nil || k.stale:
	case k.later == nil:
		k.later = time.AfterFunc(keepAfter, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.staleLocked()
		})
	default:
		k.later.Reset(keepAfter)
	}
}

func (t *Terminal) saveLocked() {
	if t.holder != nil && !t.keeper.running {
		t.keeper.running = true
		go t.saver()
	}
}

// saver hands over what there is and ends. What a holder does not take, since
// it has ended, nobody will ask for.
func (t *Terminal) saver() {
	for {
		t.mu.Lock()
		k := &t.keeper
		note, off := k.note, k.noteOff
		k.note = nil
		var meta []byte
		var kept chan struct{}
		if k.stale {
			meta, kept = t.recordedLocked(), k.kept
			k.stale, k.kept = false, nil
		}
		keep, tell := k.keep, k.keepStale
		k.keepStale = false
		if note == nil && meta == nil && !tell {
			k.running = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		if note != nil {
			_ = t.holder.Checkpoint(off, note)
		}
		if tell { // after the checkpoint that lies before it
			_ = t.holder.Keep(keep)
		}
		if meta != nil {
			_ = t.holder.SetMeta(meta)
		}
		if kept != nil {
			close(kept)
		}
	}
}
