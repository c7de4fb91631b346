package term

import (
	"context"
	"math"
	"time"

	"tether/agent/flow"
	"tether/internal/change"
)

// HolderPTY is a PTY in a process of its own, the holder, that outlives this one together with its recorded output. The terminal keeps a
// HolderPTY returned by Start up to date: the state for the next daemon is in its meta and checkpoints, see [Pool.Adopt].
//
// A Read may return an error with a method Gap() (from, to int64), once, when the output between these raw offsets is lost; it continues at
// to. Wait may also return because the holder is out of reach: then ExitedAt gives the zero time.
type HolderPTY interface {
	PTY
	// StreamFrom asks for the output from a raw offset on, once, before Read.
	StreamFrom(off int64) error
	// ExitedAt is when the child has ended, the zero time if that is not known, and the raw offset at which its output ended.
	ExitedAt() (at time.Time, end int64)
	// Gone reports, after Wait, whether the holder has ended: then the child has lost its terminal. It may take a second.
	Gone() bool
	// SetMeta and Checkpoint replace the meta, and leave a note about a raw offset; each at most 64 KiB. They return when the holder has it.
	SetMeta(p []byte) error
	Checkpoint(off int64, note []byte) error
	// Keep says from which raw offset on output is needed although it was read; none if it is the largest there is. It does not wait.
	Keep(off int64) error
	// Forget says that nobody needs the holder any more, after the exit. It returns when that has ended. Close alone leaves it to the next
	// daemon.
	Forget(ctx context.Context) error
}

// outcome is the child's fate when Wait returned.
type outcome uint8

const (
	exited    outcome = iota // it has ended
	lost                     // its holder has ended, and with it its terminal
	stillRuns                // out of this pool's hands
)

// ended returns the meaning of Wait's return, and its time.
func (t *Terminal) ended() (outcome, time.Time) {
	if t.holder == nil {
		return exited, time.Now()
	}
	if at, _ := t.holder.ExitedAt(); !at.IsZero() {
		return exited, at
	}
	if !t.life.isLeaving() && t.holder.Gone() {
		return lost, time.Now()
	}
	return stillRuns, time.Now()
}

// leave lets go of a child whose holder lives on.
func (t *Terminal) leave() {
	t.life.leave()
	t.pty.Close()
}

// introduce gives a new holder the state for the next daemon.
func (t *Terminal) introduce() error {
	if t.holder == nil {
		return nil
	}
	t.mu.Lock()
	meta := t.recordedLocked()
	t.mu.Unlock()
	return t.holder.SetMeta(meta)
}

// discard ends a child that no terminal took.
func discard(child PTY, grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace+forgetWithin)
	defer cancel()
	defer child.Close()
	if h, ok := child.(HolderPTY); child.Kill(ctx, grace) == nil && ok {
		h.Wait()
		_ = h.Forget(ctx)
	}
}

// forgetWithin bounds the end of a holder that is not needed any more.
const forgetWithin = 5 * time.Second

// maxKept is how many of the terminals that have exited, the newest, their holders keep for the daemon after this one: a process each.
const maxKept = 20

// dismiss ends the holder of a terminal that has exited when nobody needs it any more: it is not kept, and everyone was told, or nobody
// will be. Until then a daemon that comes after this one has it, and can still tell them. It returns without having ended it when the
// terminal is left.
func (t *Terminal) dismiss() {
	if t.holder == nil {
		return
	}
	defer t.holder.Close()
	select {
	case <-t.ending.reported:
	case <-t.life.leaving:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), forgetWithin)
	defer cancel()
	_ = t.holder.Forget(ctx) // one that cannot be reached ends by itself, see agent/holder
}

// tellLocked notes when the exit has been told to everyone concerned: each host to which the terminal is lent, each attached person, and
// any caller of Kill.
func (t *Terminal) tellLocked() {
	if t.ownership.attached == 0 && t.ending.knownTo(t.lending.to) {
		t.ending.tell()
	}
}

// stopTelling gives up telling the others, and does not keep the terminal.
func (t *Terminal) stopTelling() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.kept = false
	t.ending.tell()
}

// stopKeeping lets the holder go as soon as everyone was told.
func (t *Terminal) stopKeeping() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.kept = false
	t.chargeLocked()
	t.tellLocked()
}

// Heard says that the actor, a host, knows of the exit.
func (h Handle) Heard() {
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.hear(h.actor.Name)
	if t.holder != nil {
		t.staleLocked() // the next daemon need not tell it
	}
	t.tellLocked()
}

// HasHeard reports whether the actor, a host, knows of the exit, also from the daemon before this one.
func (h Handle) HasHeard() bool {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.ending.exit != nil && h.t.ending.heard[h.actor.Name]
}

// The holder must retain output that readers have not received, in case the daemon is killed. So the daemon tells the holder in steps where
// that begins. After the daemon's end, or when a link is lost, awaited readers still hold the child, as present ones would.

// HolderLogBytes is the bound of a holder's log for terminals of which logBytes are kept, see Options. It has at least room for the output
// in transit to a host.
func HolderLogBytes(logBytes int) int { return max(logBytes, minHolderLog) }

const (
	minHolderLog = 1 << 20 // bytes

	// Parts of a holder's log. Output that a reader has received may still be in transit: to a host at most uplink's window, to a person the
	// contents of sockets.
	onItsWay = 8
	// A checkpoint must lie before it; see notesPerLog.
	keepStep = 16
)

// keepNothing is the argument of HolderPTY.Keep if nothing is needed.
const keepNothing = math.MaxInt64

// heldForLocked is the raw offset from which on readers that may hold the child lack the output, or keepNothing: nobody may hold a killed
// child.
func (t *Terminal) heldForLocked() int64 {
	if t.life.isKilled() {
		return keepNothing
	}
	return t.readers.needed()
}

// neededLocked is the raw offset from where on the holder is to keep output, or keepNothing.
func (t *Terminal) neededLocked() int64 {
	if t.life.isKilled() {
		return keepNothing
	}
	least := t.heldForLocked()
	if least != keepNothing {
		log := HolderLogBytes(t.pool.opts.LogBytes)
		least = max(least-int64(log/onItsWay)-int64(log/notesPerLog), 0)
	}
	return min(least, t.screenNeededLocked())
}

// needLocked tells the holder from where on output is needed, if that has changed by much.
func (t *Terminal) needLocked() {
	if t.holder == nil || t.adoption.underWay() {
		return
	}
	now, sent := t.neededLocked(), t.keeper.keep
	step := int64(HolderLogBytes(t.pool.opts.LogBytes) / keepStep)
	if now == sent || now != keepNothing && sent != keepNothing && sent >= 0 && now >= sent && now-sent < step {
		return
	}
	t.keeper.keep, t.keeper.keepStale = now, true
	t.saveLocked()
}

// pacer is a HolderPTY that has the child wait itself for readers that may slow it only a little. So the time counts in which the child
// waits, not that in which its output waits in between, and the daemon has all output at once.
type pacer interface {
	// Paces reports whether the holder can. It never changes.
	Paces() bool
	// Until says up to which raw offset the child may print without waiting; no bound if it is the largest there is. It does not wait for the
	// holder.
	Until(off int64) error
}

// pacerOf is the holder of child as a pacer, or nil.
func pacerOf(child HolderPTY) pacer {
	if p, ok := child.(pacer); ok && p.Paces() {
		return p
	}
	return nil
}

// Parts of the log: how far a reader must be behind before the holder learns of it, in which steps, and the part reserved for cuts in
// output in transit.
const (
	paceBehind = 4
	paceStep   = 16
)

// untilLocked is the raw offset up to which the child may print without waiting for readers that may slow it only a little, or keepNothing.
func (t *Terminal) untilLocked() int64 {
	if t.adoption.underWay() || t.life.isKilled() || t.ending.exit != nil {
		return keepNothing
	}
	limit, most := int64(t.stream.log.Limit()), t.laggingLocked()
	if most <= limit/paceBehind || time.Since(t.activity.typed) < flow.Quiet {
		return keepNothing
	}
	return t.stream.log.End() + max(limit-limit/paceStep-most, 0)
}

// paceLocked tells the holder how far the child may go, if that has changed by much.
func (t *Terminal) paceLocked() {
	if t.pacer == nil {
		return
	}
	now, sent := t.untilLocked(), t.keeper.until
	step := int64(t.stream.log.Limit() / paceStep)
	if now == sent || now != keepNothing && sent != keepNothing && now > sent-step && now < sent+step {
		return
	}
	t.keeper.until, t.keeper.untilStale = now, true
	t.saveLocked()
}

// keeper tells the holder which state and output to keep. Its goroutine, saver, exists only while there is something to tell. Guarded by
// the terminal's mutex.
type keeper struct {
	stale   bool          // the holder's record is out of date
	note    []byte        // the newest checkpoint that it does not have
	noteOff int64         // where that is
	running bool          // saver runs
	kept    change.Signal // the present state was kept
	later   *time.Timer   // runs keepLater's end
	noted   int64         // raw offset of the last checkpoint

	screens  []Note // that the holder does not have
	screened int64  // raw offset of the newest that it was given

	keep      int64 // the last Keep; -1: unknown
	keepStale bool  // it was not told yet

	until      int64 // raw offset up to which the holder lets the child print
	untilStale bool
}

// keepWithin bounds the wait for a holder in calls that have no context: one that was stopped must not stop its terminal's doors.
const keepWithin = time.Second

// keep has the record kept and returns when it is, or ctx ends.
func (t *Terminal) keep(ctx context.Context) error {
	t.mu.Lock()
	if t.holder == nil {
		t.mu.Unlock()
		return nil
	}
	t.staleLocked()
	kept := t.keeper.kept.Next()
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

// saver passes on the waiting state and ends. If the holder refuses it, since it has ended, nobody will ask for it.
func (t *Terminal) saver() {
	for {
		t.mu.Lock()
		k := &t.keeper
		note, off, screens := k.note, k.noteOff, k.screens
		k.note, k.screens = nil, nil
		var meta []byte
		var kept change.Signal
		if k.stale {
			meta, kept = t.recordedLocked(), k.kept
			k.stale, k.kept = false, change.Signal{}
		}
		keep, tell := k.keep, k.keepStale
		until, pace := k.until, k.untilStale
		k.keepStale, k.untilStale = false, false
		if note == nil && meta == nil && len(screens) == 0 && !tell && !pace {
			k.running = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		if pace {
			_ = t.pacer.Until(until)
		}
		if note != nil {
			_ = t.holder.Checkpoint(off, note)
		}
		for _, s := range screens {
			_ = t.screens.Screen(s.Off, s.Text)
		}
		if tell { // after the checkpoint and the screen that lie before it
			_ = t.holder.Keep(keep)
		}
		if meta != nil {
			_ = t.holder.SetMeta(meta)
		}
		kept.Raise()
	}
}
