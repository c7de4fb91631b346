package term

import (
	"errors"
	"sync"
	"time"

	"tether/agent/loans"
	"tether/platform/pty"
)

// Bounds of drain, after the end of the child. Background processes that keep the pty
// open must not keep the terminal alive forever.
const (
	drainQuiet = 250 * time.Millisecond // drain ends after this long without output
	drainMax   = 5 * time.Second        // drain ends after this long, or one stall time later if the pump waits for a reader then
)

// run waits for the child and its last output, then records the exit, once. It returns
// false, without an exit, if the child keeps running outside this pool: the pool was
// closed and left it to its holder, or the holder is out of reach.
func (t *Terminal) run() bool {
	if t.holder != nil {
		if d, ok := t.holder.(interface {
			Direct(take func(p []byte) bool)
		}); ok {
			d.Direct(t.takeNow)
		}
		_ = t.holder.StreamFrom(t.log.End()) // if it fails, so does Read
	}
	go t.pump()
	t.watchIdle()
	t.watchInput()
	status := t.pty.Wait()
	how, at := t.ended()
	if how == stillRuns {
		t.pty.Close()
		<-t.life.pumped
		t.closeReaders()
		return false
	}
	t.drain()
	if t.holder == nil {
		t.pty.Close()
	}
	<-t.life.pumped
	t.log.Finish(time.Now())
	ended := t.recordExit(how, status, at)
	close(t.life.done)
	t.pool.changed()
	t.report(ended)
	return true
}

// closeReaders closes all readers of a terminal whose child keeps running outside this
// pool.
func (t *Terminal) closeReaders() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.activity.stopIdle()
	t.stopAttendingLocked()
	t.log.CloseAll()
	close(t.life.left) // under mu, so that no reader is opened unnoticed
	t.loans.Stop(ErrLeft)
}

// recordExit records the exit behind all output and stops what only a running child
// needs. It returns what ends with it.
func (t *Terminal) recordExit(how outcome, status pty.Exit, at time.Time) (ended []loans.Act) {
	t.mu.Lock()
	defer t.mu.Unlock()
	exit := t.ending.exitOf(how, status, at)
	t.log.Exit(exit, how == exited)
	t.ending.exit = &exit
	if t.holder != nil && how == exited {
		t.ending.kept = true
		t.staleLocked()
		t.chargeLocked()
	}
	t.loans.Stop(ErrExited)
	ended = t.loans.EndPorts(true)
	t.input.shut()
	t.activity.stopIdle()
	t.endReadyLocked()
	t.stopAttendingLocked()
	t.tellLocked()
	return ended
}

// drain waits for the end of output. It gives up when the pty has been quiet for
// drainQuiet although a process keeps it open, and after drainMax. If the pump waits
// for a reader then, the child's last output is still in the pty: drain waits for one
// more stall time.
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

// readBuffers are shared by all pumps. A pump takes one only when there is output to
// read. A Linux pty returns at most 4,095 bytes per read, a holder more.
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
				t.letOthersRun(n, pollEvery)
			}
			readBuffers.Put(buf)
		}
		if err != nil && !t.gap(err) {
			return // io.EOF, or the pty was closed: either way nothing follows
		}
	}
}

// gapError is an error of HolderPTY.Read.
type gapError interface {
	error
	Gap() (from, to int64)
}

// gap records missing output if err reports that; otherwise it returns false.
func (t *Terminal) gap(err error) bool {
	g, ok := errors.AsType[gapError](err)
	if ok {
		from, to := g.Gap()
		t.log.Lose(from, to, time.Now())
	}
	return ok
}

// takeNow appends p to the log on the goroutine that reads the holder's connection. That
// goroutine calls it only while the pump is in WaitReadable, and keeps the pump there
// until takeNow returns; so there is one appender at a time. takeNow never blocks: if the
// child must wait for readers first, it returns false without effect, and the pump reads
// p and waits.
func (t *Terminal) takeNow(p []byte) bool {
	if t.blocked(len(p)) {
		return false
	}
	if _, waits := t.holdLeft(len(p)); waits {
		return false
	}
	t.take(p)
	t.letOthersRun(len(p), pollEveryDirect)
	return true
}

// reading reports whether the pump waits for output, and how long ago the last byte came.
func (t *Terminal) reading() (bool, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.activity.inRead, time.Since(t.activity.printed)
}

// Bytes after which letOthersRun starts a goroutine: 16 KiB are 0.3 ms of a fast child.
// The output that takeNow gets comes faster, in larger pieces.
const (
	pollEvery       = 16 << 10
	pollEveryDirect = 64 << 10
)

// letOthersRun makes the Go scheduler poll the network, once for every so many appended
// bytes; n were appended now. Go 1.26 polls when a goroutine blocks and no other can run,
// and otherwise only every 10 ms (sysmon). A pump that always finds output never blocks,
// and may occupy the very thread that would poll while the others sleep. Input,
// acknowledgements and the output of other terminals then wait for 10 ms. Starting a
// goroutine, even an empty one, wakes a thread, which polls once it has run that
// goroutine. The 99th percentile of an echo during a flood is 3 ms with it and 13 ms
// without. See https://github.com/golang/go/pull/51651.
func (t *Terminal) letOthersRun(n, every int) {
	if t.unpolled += n; t.unpolled >= every {
		t.unpolled = 0
		go func() {}()
	}
}

func (t *Terminal) setInRead(v bool) {
	t.mu.Lock()
	t.activity.inRead = v
	t.mu.Unlock()
}
