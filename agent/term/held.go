package term

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"tether/agent/ring"
	"tether/platform/pty"
	"tether/shellint"
)

// Held is a PTY in a process of its own, the holder, that outlives this one
// together with the output it has recorded. A Start that returns one has it
// kept up to date by the terminal: what the next daemon needs is in its meta
// and checkpoints, see [Pool.Adopt].
//
// A Read may return an error with a method Gap() (from, to int64), once, when
// the output between these raw offsets is lost; it goes on at to. Wait may
// also return because the holder is out of reach: then ExitedAt gives the
// zero time.
type Held interface {
	PTY
	// StreamFrom asks for the output from a raw offset on, once, before Read.
	StreamFrom(off int64) error
	// ExitedAt is when the child has ended, the zero time if that is not
	// known, and the raw offset at which its output ended.
	ExitedAt() (at time.Time, end int64)
	// Gone reports, after Wait, whether the holder has ended: then the child
	// has lost its terminal. It may take a second.
	Gone() bool
	// SetMeta and Checkpoint replace the meta, and leave a note about a raw
	// offset; each at most 64 KiB. They return when the holder has it.
	SetMeta(p []byte) error
	Checkpoint(off int64, note []byte) error
	// Keep says from which raw offset on output is needed although it was
	// read; none if it is the largest there is. It does not wait.
	Keep(off int64) error
	// Forget says that nobody needs the holder any more, after the exit. It
	// returns when that has ended. Close alone leaves it to the next daemon.
	Forget(ctx context.Context) error
}

// forgetWithin bounds the end of a holder that is not needed any more.
const forgetWithin = 5 * time.Second

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

// ending is what became of the child when Wait returned.
type ending uint8

const (
	exited    ending = iota // it has ended
	lost                    // its holder has ended, and with it its terminal
	stillRuns               // out of this pool's hands
)

// ended says what Wait's return means, and when that was.
func (t *Terminal) ended() (ending, time.Time) {
	if t.held == nil {
		return exited, time.Now()
	}
	if at, _ := t.held.ExitedAt(); !at.IsZero() {
		return exited, at
	}
	if !t.isLeaving() && t.held.Gone() {
		return lost, time.Now()
	}
	return stillRuns, time.Now()
}

// leave lets go of a child whose holder lives on.
func (t *Terminal) leave() {
	t.leaveOnce.Do(func() { close(t.leaving) })
	t.pty.Close()
}

func (t *Terminal) isLeaving() bool {
	select {
	case <-t.leaving:
		return true
	default:
		return false
	}
}

// dismiss ends the holder of a terminal that has exited when nobody needs it
// any more: everyone was told, or nobody will be. Until then a daemon that
// comes after this one could still tell them. It returns without having ended
// it when the terminal is left.
func (t *Terminal) dismiss() {
	if t.held == nil {
		return
	}
	defer t.held.Close()
	select {
	case <-t.told:
	case <-t.leaving:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), forgetWithin)
	defer cancel()
	_ = t.held.Forget(ctx) // one that cannot be reached ends by itself, see agent/holder
}

// tellLocked notes when the exit has been told to everyone it concerns: each
// host the terminal is lent to, each person at it, and whoever kills it.
func (t *Terminal) tellLocked() {
	if t.exit == nil || t.attached+t.kills > 0 {
		return
	}
	for _, host := range t.lentTo {
		if !t.heard[host] {
			return
		}
	}
	t.toldLocked()
}

func (t *Terminal) toldLocked() {
	t.toldOnce.Do(func() { close(t.told) })
}

// tellAll gives up those who were not told.
func (t *Terminal) tellAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.toldLocked()
}

// introduce gives a new holder what the next daemon needs.
func (t *Terminal) introduce() error {
	if t.held == nil {
		return nil
	}
	t.mu.Lock()
	meta := t.recordedLocked()
	t.mu.Unlock()
	return t.held.SetMeta(meta)
}

// Heard says that the actor, a host, knows of the exit.
func (h Handle) Heard() {
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard == nil {
		t.heard = map[string]bool{}
	}
	t.heard[h.actor.Name] = true
	t.tellLocked()
}

// discard ends a child that no terminal took.
func discard(child PTY, grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace+forgetWithin)
	defer cancel()
	defer child.Close()
	if h, ok := child.(Held); child.Kill(ctx, grace) == nil && ok {
		h.Wait()
		_ = h.Forget(ctx)
	}
}

// Remember keeps a text of at most 1 KiB for the actor, a host's door, for as
// long as the terminal is lent there: also for the daemon after this one, if
// the terminal outlives this one. It returns when that is certain, or ctx
// ends; ErrNotFound if the terminal is not lent there.
func (h Handle) Remember(ctx context.Context, text string) error {
	t := h.t
	t.mu.Lock()
	lent, same := slices.Contains(t.lentTo, h.actor.Name), t.memos[h.actor.Name] == text
	if lent && !same {
		if t.memos == nil {
			t.memos = map[string]string{}
		}
		t.memos[h.actor.Name] = text[:min(len(text), maxMemo)]
	}
	t.mu.Unlock()
	switch {
	case !lent:
		return ErrNotFound
	case same:
		return nil
	}
	return t.keep(ctx)
}

// Remembered returns what Remember kept, "" if there is nothing.
func (h Handle) Remembered() string {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.memos[h.actor.Name]
}

// exitLocked is the exit to report.
func (t *Terminal) exitLocked(how ending, status pty.Exit, at time.Time) Exit {
	if how == lost {
		return Exit{Code: -1, Reason: ReasonLost, At: at}
	}
	return Exit{Code: status.Code, Signal: status.Signal, Reason: cmp.Or(t.reason, ReasonExited), At: at}
}
