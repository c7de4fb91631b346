package term

import (
	"context"
	"time"

	"tether/agent/flow"
	"tether/agent/output"
	"tether/internal/change"
)

// HolderPTY is a PTY in a process of its own, the holder. The holder and the output that
// it has recorded outlive this process. The terminal keeps a HolderPTY returned by Start
// up to date: the state for the next daemon is in its meta and checkpoints, see
// [Pool.Adopt].
//
// A Read may return an error with a method Gap() (from, to int64), once, when the output
// between these raw offsets is lost; it continues at to. Wait may also return because the
// holder is out of reach: ExitedAt then returns the zero time.
type HolderPTY interface {
	PTY
	// StreamFrom asks for the output from a raw offset on, once, before Read.
	StreamFrom(off int64) error
	// ExitedAt returns when the child ended, the zero time if that is not known, and the
	// raw offset at which its output ended.
	ExitedAt() (at time.Time, end int64)
	// Gone reports, after Wait, whether the holder has ended: then the child has lost its
	// terminal. It may take a second.
	Gone() bool
	// SetMeta and Checkpoint replace the meta, and leave a note about a raw offset; each
	// at most 64 KiB. They return when the holder has it.
	SetMeta(p []byte) error
	Checkpoint(off int64, note []byte) error
	// Keep tells the holder from which raw offset on output is needed although it was
	// read; math.MaxInt64 means that none is. It does not wait.
	Keep(off int64) error
	// Forget ends the holder of an exited child, because nobody needs it any more, and
	// returns when the holder has ended. After Close alone, the holder stays for the next
	// daemon.
	Forget(ctx context.Context) error
}

// screenKeeper is a HolderPTY that keeps screens for the next daemon.
type screenKeeper interface {
	// KeepsScreens reports whether the holder can keep screens. It never changes.
	KeepsScreens() bool
	// Screen stores the screen at a raw offset, at most 1 MiB. It does not wait for the
	// holder, which drops a screen together with the output after it.
	Screen(off int64, p []byte) error
}

// outcome is what has happened to the child when Wait returned.
type outcome uint8

const (
	exited    outcome = iota // it has ended
	lost                     // its holder has ended, and with it its terminal
	stillRuns                // the child may run on, but this pool does not control it any more
)

// ended returns why Wait returned, and when that happened.
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

// leave disconnects from a child, whose holder continues.
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

// discard ends a child that belongs to no terminal.
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

// maxKept is how many exited terminals, the newest, are kept by their holders for the
// next daemon. Each takes a process.
const maxKept = 20

// dismiss waits until nobody needs the holder of an exited terminal any more, and then
// ends it: the holder need not keep the output, and everyone was told of the exit, or
// nobody will be. Until then the next daemon could take over and tell them. If the
// terminal is left to the next daemon, dismiss returns without ending the holder.
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
	_ = t.holder.Forget(ctx) // a holder that cannot be reached ends by itself, see agent/holder
}

// tellLocked lets dismiss end the holder if everyone concerned knows of the exit: each
// host to which the terminal is lent, each attached person, and any caller of Kill.
func (t *Terminal) tellLocked() {
	if t.ownership.attached == 0 && t.ending.knownTo(t.loans.Hosts()) {
		t.ending.tell()
	}
}

// stopTelling lets dismiss end the holder at once, even if not everyone knows of the
// exit.
func (t *Terminal) stopTelling() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.kept = false
	t.ending.tell()
}

// stopKeeping lets dismiss end the holder as soon as everyone knows of the exit.
func (t *Terminal) stopKeeping() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.kept = false
	t.chargeLocked()
	t.tellLocked()
}

// Heard records that the actor, a host, knows of the exit.
func (h Handle) Heard() {
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.hear(h.actor.Name)
	t.staleLocked() // the next daemon need not tell it
	t.tellLocked()
}

// HasHeard reports whether the actor, a host, knows of the exit, also from the daemon
// before this one.
func (h Handle) HasHeard() bool {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.ending.exit != nil && h.t.ending.heard[h.actor.Name]
}

// The holder must retain output that readers have not received, in case the daemon is
// killed. So the daemon tells the holder in steps where that begins. When the daemon has
// ended, or a link is lost, readers that are awaited back hold the child as if they were
// present.

// HolderLogBytes returns the bound of a holder's log for terminals with Options.LogBytes
// of logBytes. The log has at least room for the output in transit to a host.
func HolderLogBytes(logBytes int) int { return max(logBytes, minHolderLog) }

const (
	minHolderLog = 1 << 20 // bytes

	// notesPerLog is how many checkpoints are made while the holder's log fills once. The
	// next daemon cannot use the part of a trimmed log before the first checkpoint in it,
	// and so loses at most the distance between two.
	notesPerLog = 16

	// screenPart is the part of the holder's log that is free when its newest screen is
	// given up, although there is no newer one.
	screenPart = 32

	// Parts of a holder's log. Output that a reader has received may still be in transit:
	// to a host at most uplink's window, to a person the contents of sockets.
	onItsWay = 8
	// A checkpoint must lie before it; see notesPerLog.
	keepStep = 16
)

// neededLocked returns the raw offset from which on the holder has to keep output, or
// output.NoOffset.
func (t *Terminal) neededLocked() int64 {
	if t.life.isKilled() {
		return output.NoOffset
	}
	least := t.log.Needed()
	if least != output.NoOffset {
		log := HolderLogBytes(t.pool.opts.LogBytes)
		least = max(least-int64(log/onItsWay)-int64(log/notesPerLog), 0)
	}
	return min(least, t.screenNeededLocked())
}

// screenNeededLocked is the raw offset of the holder's newest screen, as long as the
// holder can keep the output behind it, or output.NoOffset.
func (t *Terminal) screenNeededLocked() int64 {
	log := int64(HolderLogBytes(t.pool.opts.LogBytes))
	if t.screens == nil || t.log.End()-t.log.Screened() >= log-log/screenPart {
		return output.NoOffset // before the holder's log is full: otherwise the child would wait for ever
	}
	return t.log.Screened()
}

// needLocked tells the holder from which offset on output is needed, if that has changed
// by at least keepStep.
func (t *Terminal) needLocked() {
	if t.holder == nil || t.log.Restoring() {
		return
	}
	now, sent := t.neededLocked(), t.keeper.keep
	step := int64(HolderLogBytes(t.pool.opts.LogBytes) / keepStep)
	if now == sent || now != output.NoOffset && sent != output.NoOffset && sent >= 0 && now >= sent && now-sent < step {
		return
	}
	t.keeper.keep, t.keeper.keepStale = now, true
	t.saveLocked()
}

// pacer is a HolderPTY that itself makes the child wait for readers that may slow it only
// a little. So the budget counts the time in which the child waits, not the time in which
// its output is on the way, and the daemon gets all output at once.
type pacer interface {
	// Paces reports whether the holder can make the child wait. It never changes.
	Paces() bool
	// Until tells the holder up to which raw offset the child may print without waiting;
	// math.MaxInt64 means that it never waits. Until does not wait for the holder.
	Until(off int64) error
}

// Fractions of the log: paceBehind is how far a reader must be behind before the holder
// is told. paceStep is by how much the offset must move before the holder is told again,
// and the part reserved for cuts in output in transit.
const (
	paceBehind = 4
	paceStep   = 16
)

// untilLocked returns the raw offset up to which the child may print without waiting for
// readers that may slow it only a little. It returns output.NoOffset if the child
// does not wait for them at all.
func (t *Terminal) untilLocked() int64 {
	if t.log.Restoring() || t.life.isKilled() || t.ending.exit != nil {
		return output.NoOffset
	}
	limit, most := int64(t.log.Limit()), t.log.Lag()
	if most <= limit/paceBehind || time.Since(t.activity.typed) < flow.Quiet {
		return output.NoOffset
	}
	return t.log.End() + max(limit-limit/paceStep-most, 0)
}

// paceLocked tells the holder up to which offset the child may print without waiting, if
// that has changed by at least paceStep.
func (t *Terminal) paceLocked() {
	if t.pacer == nil {
		return
	}
	now, sent := t.untilLocked(), t.keeper.until
	step := int64(t.log.Limit() / paceStep)
	if now == sent || now != output.NoOffset && sent != output.NoOffset && now > sent-step && now < sent+step {
		return
	}
	t.keeper.until, t.keeper.untilStale = now, true
	t.saveLocked()
}

// keeper tells the holder which state and output to keep. Its goroutine, saver, exists
// only while there is something to tell. Guarded by the terminal's mutex.
type keeper struct {
	stale   bool          // the record that the holder has is out of date
	running bool          // saver runs
	kept    change.Signal // the present state was kept
	later   *time.Timer   // runs keepLaterLocked's end

	keep      int64 // argument of the next or last HolderPTY.Keep; -1: unknown
	keepStale bool  // the holder was not told keep yet

	until      int64 // argument of the next or last pacer.Until
	untilStale bool
}

// keepWithin bounds the wait for a holder in calls that have no context: a stopped holder
// must not block the doors to its terminal.
const keepWithin = time.Second

// keep sends the record to the holder and returns when the holder has it, or ctx ends.
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

// changed sends the record to the holder and tells the pool's watchers. It waits for the
// holder for at most keepWithin.
func (t *Terminal) changed() {
	ctx, cancel := context.WithTimeout(context.Background(), keepWithin)
	defer cancel()
	_ = t.keep(ctx) // on error the holder gets it a little later
	t.pool.changed()
}

// staleLocked makes saver send the record to the holder.
func (t *Terminal) staleLocked() {
	t.keeper.stale = t.holder != nil
	t.saveLocked()
}

// keepAfter is how long a shell's commands are gathered before the record is sent.
const keepAfter = 200 * time.Millisecond

// keepLaterLocked makes saver send the record to the holder after keepAfter without
// another call.
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

// saver sends the waiting state to the holder until nothing waits, then ends. It ignores
// errors: a holder that has ended refuses the state, and nobody will ask for it.
func (t *Terminal) saver() {
	for {
		t.mu.Lock()
		k := &t.keeper
		note, screens := t.log.TakeNotes()
		var meta []byte
		var kept change.Signal
		if k.stale {
			meta, kept = t.recordedLocked(), k.kept
			k.stale, k.kept = false, change.Signal{}
		}
		keep, tell := k.keep, k.keepStale
		until, pace := k.until, k.untilStale
		k.keepStale, k.untilStale = false, false
		if note.Text == nil && meta == nil && len(screens) == 0 && !tell && !pace {
			k.running = false
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		if pace {
			_ = t.pacer.Until(until)
		}
		if note.Text != nil {
			_ = t.holder.Checkpoint(note.Off, note.Text)
		}
		for _, s := range screens {
			_ = t.screens.Screen(s.Off, s.Text)
		}
		if tell { // after the checkpoint and the screens, since it lets the holder drop the output before them
			_ = t.holder.Keep(keep)
		}
		if meta != nil {
			_ = t.holder.SetMeta(meta)
		}
		kept.Raise()
	}
}
