package term

import (
	"context"
	"time"
)

// HolderPTY is a PTY in a process of its own, the holder, that outlives this one
// together with the output it has recorded. A Start that returns one has it
// kept up to date by the terminal: what the next daemon needs is in its meta
// and checkpoints, see [Pool.Adopt].
//
// A Read may return an error with a method Gap() (from, to int64), once, when
// the output between these raw offsets is lost; it goes on at to. Wait may
// also return because the holder is out of reach: then ExitedAt gives the
// zero time.
type HolderPTY interface {
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

// outcome is what became of the child when Wait returned.
type outcome uint8

const (
	exited    outcome = iota // it has ended
	lost                     // its holder has ended, and with it its terminal
	stillRuns                // out of this pool's hands
)

// ended says what Wait's return means, and when that was.
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

// introduce gives a new holder what the next daemon needs.
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
