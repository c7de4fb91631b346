package term

import (
	"sync"
	"time"

	"tether/shellint"
)

// Bounds of drain, after the end of the child. Background processes that keep the pty open must not keep the terminal alive forever.
const (
	drainQuiet = 250 * time.Millisecond // drain ends after this long without output
	drainMax   = 5 * time.Second        // drain ends after this long in any case; but see there
)

// run waits for the child and its last output, then reports the exit, once. It returns false, without a report, if the child runs on
// without the pool.
func (t *Terminal) run() bool {
	if t.holder != nil {
		if d, ok := t.holder.(interface {
			Direct(take func(p []byte) bool)
		}); ok {
			d.Direct(t.takeNow)
		}
		_ = t.holder.StreamFrom(t.stream.log.End()) // if it fails, so does Read
	}
	go t.pump()
	t.watchIdle()
	t.watchInput()
	status := t.pty.Wait()
	how, now := t.ended()
	if how == stillRuns {
		t.pty.Close()
		<-t.life.pumped
		t.mu.Lock()
		t.activity.stopIdle()
		t.stopAttendingLocked()
		for r := range t.readers.open {
			r.closed = true
			r.signal()
		}
		close(t.life.left) // under mu: a reader that comes now knows
		t.mu.Unlock()
		return false
	}
	t.drain()
	if t.holder == nil {
		t.pty.Close()
	}
	<-t.life.pumped
	t.finish()

	t.mu.Lock()
	exit := t.ending.exitOf(how, status, now)
	events := t.commands.tracker.Close(t.stream.log.End(), shellint.Exit{Code: int64(exit.Code), Known: how == exited})
	t.putCommandsLocked(events, now)
	t.putMarkLocked(Mark{Kind: MarkExited, Off: t.stream.texted, Exit: exit})
	if t.holder != nil && how == exited {
		t.ending.kept = true
		t.staleLocked()
		t.chargeLocked()
	}
	t.input.shut()
	t.activity.stopIdle()
	t.endReadyLocked()
	t.stopAttendingLocked()
	t.wakeLocked()
	t.tellLocked()
	t.mu.Unlock()
	close(t.life.done)
	t.pool.changed()
	return true
}

// drain returns at the end of output, or when the pty was quiet for a while although a process keeps it open. While a reader holds up the
// pump, the child's last output is still in the pty; so the reader gets its stall time here, once.
func (t *Terminal) drain() {
	limit := time.NewTimer(drainMax)
	defer limit.Stop()
	tick := time.NewTicker(drainQuiet)
	defer tick.Stop()
	for extended := false; ; {
		select {
		case <-t.life.pumped:
			return
		case <-limit.C:
			if reading, _ := t.reading(); reading || extended {
				return
			}
			extended = true
			limit.Reset(t.pool.opts.Stall)
		case <-tick.C:
			if reading, since := t.reading(); reading && since >= drainQuiet {
				return
			}
		}
	}
}

// readBuffers are shared by all pumps. A pump takes one only when there is output to read. A Linux pty returns at most 4,095 bytes per
// read, a holder more.
var readBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// pump moves output from the pty into the log until the output ends.
func (t *Terminal) pump() {
	defer close(t.life.pumped)
	for {
		t.setInRead(true)
		err := t.pty.WaitReadable()
		if err == nil {
			buf := readBuffers.Get().(*[32 << 10]byte)
			var n int
			n, err = t.pty.Read(buf[:])
			t.setInRead(false)
			if n > 0 {
				t.hold(n)
				t.take(buf[:n])
				t.lookAround(n, lookBytes)
			}
			readBuffers.Put(buf)
		}
		if err != nil && !t.gap(err) {
			return // io.EOF, or the pty was closed: either way nothing follows
		}
	}
}

// takeNow appends p to the log in place of the pump, which is waiting for output. It returns false, without effect, if the child must wait
// for readers first: only the pump waits.
func (t *Terminal) takeNow(p []byte) bool {
	if t.blocked(len(p)) {
		return false
	}
	if _, waits := t.holdLeft(len(p)); waits {
		return false
	}
	t.take(p)
	t.lookAround(len(p), lookHeld)
	return true
}

// reading reports whether the pump waits for output, and how long ago the last byte came.
func (t *Terminal) reading() (bool, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.activity.inRead, time.Since(t.activity.printed)
}

// lookBytes is the number of bytes after which a pump lets the scheduler look for other ready goroutines: 0.3 ms of a fast child. Output
// from a holder arrives in larger pieces, and faster.
const (
	lookBytes = 16 << 10
	lookHeld  = 64 << 10
)

// look is empty: starting it as a goroutine is the point. Go 1.26 polls the network when a goroutine blocks and no other can run, and
// otherwise only every 10 ms (sysmon). A pump that always finds output never blocks, and may occupy the very thread that would poll while
// the others sleep. Input, acknowledgements and the output of other terminals then wait for 10 ms. Starting a goroutine wakes a thread,
// which polls after it has run that. The 99th percentile of an echo during a flood is 3 ms with it and 13 ms without. See
// https://github.com/golang/go/pull/51651.
func look() {}

// lookAround starts look after so many bytes.
func (t *Terminal) lookAround(n, every int) {
	if t.intake.moved += n; t.intake.moved >= every {
		t.intake.moved = 0
		go look()
	}
}

func (t *Terminal) setInRead(v bool) {
	t.mu.Lock()
	t.activity.inRead = v
	t.mu.Unlock()
}
