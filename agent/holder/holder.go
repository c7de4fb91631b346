package holder

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"tether/agent/flow"
	"tether/agent/ring"
	"tether/platform/pty"
)

// child is a program on a pty: platform/pty's, or a test's.
type child interface {
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
	Resize(pty.Size) error
	Wait() pty.Exit
	Kill(ctx context.Context, grace time.Duration) error
	Pid() int
	Close() error
}

// holder owns one child and its log.
//
//	running ──child reaped, output ended──▶ exited ──Forget, 24 h, TERM──▶ over
//	   └──────────────────TERM: tree killed───────────────────────────────▶
//
// Goroutines: run waits for the child; pump is the only one that appends output;
// writeInput writes input; each connection has a reader (serve) and a writer (publish).
// All end with the holder.
type holder struct {
	// Set at construction.
	spec        Spec
	child       child
	started     time.Time
	closeSocket func() error         // closes the socket, removes it and returns
	subreaper   bool                 // it is the parent of orphans, see stay
	key         []byte               // a connecting process must prove that it has it
	check       func(net.Conn) error // returns an error for a process that may not connect; nil accepts all

	room     chan struct{}   // 1 slot: the floor moved, or the connected daemon changed
	inputs   chan input      // to writeInput
	pumped   chan struct{}   // closed by pump at the end of output
	ending   chan struct{}   // closed by stop
	ended    chan struct{}   // closed by stop at its end
	finished chan struct{}   // closed by finish, when no daemon needs the holder any more
	end      func()          // closes ending
	gone     func()          // closes ended
	finish   func()          // closes finished
	ctx      context.Context // ends with finished; cuts the grace of kills short
	tasks    sync.WaitGroup

	restDue time.Time // when pump next rests in a flood; owned by pump

	mu       sync.Mutex
	log      *ring.Log
	notes    checkpoints
	screens  checkpoints // none before the log
	meta     []byte
	size     pty.Size
	taken    int64    // the furthest offset that a former daemon has taken
	keep     int64    // offset from which on the daemon needs bytes although it has taken them
	session  *session // the connected daemon
	exit     *exitRecord
	free     bool      // pump does not wait: the log was full for too long, or the holder ends. Reset when a daemon connects or takes
	killed   bool      // the child's end was requested
	holding  bool      // pump waits for room
	inRead   bool      // pump waits for the child's output
	lastByte time.Time // when output came last
	flood    int       // bytes read without a pause
	awake    time.Time // when the last of these bytes was read, or when the rest after it ended
	budget   flow.Budget
	since    time.Time // start of the current stall time, see stallLeftLocked
}

func newHolder(spec Spec, c child, closeSocket func() error) *holder {
	h := &holder{
		spec: spec, child: c, started: time.Now(), closeSocket: closeSocket, meta: spec.Meta, size: spec.Command.Size,
		room: make(chan struct{}, 1), inputs: make(chan input, 1),
		pumped: make(chan struct{}), ending: make(chan struct{}), ended: make(chan struct{}), finished: make(chan struct{}),
		log: ring.New(spec.LogBytes), keep: NoOffset,
	}
	h.end = sync.OnceFunc(func() { close(h.ending) })
	h.gone = sync.OnceFunc(func() { close(h.ended) })
	ctx, cancel := context.WithCancel(context.Background())
	h.ctx = ctx
	h.finish = sync.OnceFunc(func() { close(h.finished); cancel() })
	return h
}

// Drain bounds after the leader's end, as in agent/term: a background process that keeps
// the pty open must not keep the terminal alive for ever.
const (
	drainLook  = 50 * time.Millisecond
	drainQuiet = 250 * time.Millisecond // end after this long without a byte
	drainMax   = 5 * time.Second        // end in any case; time in which the log is full does not count
)

// run waits for the child and its last output, then until the daemon knows of it. It
// returns when the holder is over.
func (h *holder) run() {
	h.tasks.Go(h.pump)
	h.tasks.Go(h.writeInput)
	status := h.child.Wait()
	h.drain()
	h.child.Close()
	<-h.pumped
	h.recordExit(status)
	h.linger()
	h.mu.Lock()
	if h.session != nil {
		h.session.closeLocked(nil)
	}
	h.mu.Unlock()
	_ = h.closeSocket() // a socket that stays behind is removed by List
	h.outlast()
	h.tasks.Wait()
}

// outlast waits, if a signal has ended the holder, until stop has killed the whole tree:
// the child itself may have ended before its descendants.
func (h *holder) outlast() {
	select {
	case <-h.ending:
	default:
		return
	}
	timer := time.NewTimer(killMax)
	defer timer.Stop()
	select {
	case <-h.ended:
	case <-timer.C:
	}
}

// drain returns at the end of output, or when the pty has been quiet for a while although
// some process still has it open.
func (h *holder) drain() {
	tick := time.NewTicker(drainLook)
	defer tick.Stop()
	began := time.Now() // the last output may not have been read yet, however long the silence before it
	for left := drainMax; left > 0; {
		select {
		case <-h.pumped:
			return
		case <-tick.C:
		}
		h.mu.Lock()
		quiet := h.inRead && time.Since(h.lastByte) >= drainQuiet && time.Since(began) >= drainQuiet
		holding := h.holding
		h.mu.Unlock()
		if quiet {
			return
		}
		if !holding {
			left -= drainLook
		}
	}
}

func (h *holder) recordExit(status pty.Exit) {
	h.mu.Lock()
	h.exit = &exitRecord{end: h.log.End(), at: time.Now(), exit: status}
	if s := h.session; s != nil {
		s.controlLocked(h.exit.frame())
	}
	h.mu.Unlock()
}

// linger waits until a daemon has acknowledged the exit, a signal ends the holder, or no
// daemon has been connected at the end of a period of Spec.KeepExited.
func (h *holder) linger() {
	defer h.finish()
	timer := time.NewTimer(h.spec.KeepExited)
	defer timer.Stop()
	for {
		select {
		case <-h.finished:
			return
		case <-h.ending:
			h.farewell()
			return
		case <-timer.C:
		}
		h.mu.Lock()
		alone := h.session == nil
		h.mu.Unlock()
		if alone {
			return
		}
		timer.Reset(h.spec.KeepExited)
	}
}

// Bounds of the end that a signal asks for.
const (
	killGrace   = 3 * time.Second           // between TERM and KILL for the child's tree
	farewellMax = 2 * time.Second           // for the daemon to take the rest
	killMax     = killGrace + 5*time.Second // for killed processes to disappear; those that do not are out of reach
)

// farewell lets the connected daemon take the last bytes.
func (h *holder) farewell() {
	timer := time.NewTimer(farewellMax)
	defer timer.Stop()
	for {
		h.mu.Lock()
		taken := h.session == nil || !h.session.streaming || h.session.taken == h.log.End()
		h.mu.Unlock()
		if taken {
			return
		}
		select {
		case <-h.room: // free for this use: pump has ended
		case <-timer.C:
			return
		}
	}
}

// stop ends the child's tree and then the holder.
func (h *holder) stop() {
	defer h.gone()
	h.end()
	_ = h.child.Kill(context.Background(), killGrace) // on error, the remaining processes are another user's
}

// writeInput writes input, one piece after the other; a write blocks while the child does
// not read. It ends with the holder: the child has been closed before, which unblocks a
// write.
func (h *holder) writeInput() {
	for {
		select {
		case <-h.finished:
			return
		case in := <-h.inputs:
			_, err := h.child.Write(in.data)
			in.from.reply(in.request, err)
		}
	}
}

// input is a piece of input on its way to the child.
type input struct {
	from    *session
	request uint32
	data    []byte
}

// signal sends a signal to the processes in the foreground.
func (h *holder) signal(name string) error {
	if c, ok := h.child.(interface{ Signal(name string) error }); ok {
		return c.Signal(name)
	}
	return errors.New("this terminal does not support signals")
}

// resize changes the size of the pty.
func (h *holder) resize(s pty.Size) error {
	if err := h.child.Resize(s); err != nil {
		return err
	}
	h.mu.Lock()
	h.size = s
	h.mu.Unlock()
	return nil
}

// checkpoint keeps a note, if its offset is in the log.
func (h *holder) checkpoint(c Checkpoint) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.Off < h.log.Start() || c.Off > h.log.End() {
		return errors.New("the offset is not in the log")
	}
	h.notes.put(c)
	return nil
}

func (h *holder) setMeta(p []byte) {
	h.mu.Lock()
	h.meta = p
	h.mu.Unlock()
}

// forget removes the socket once the exit was recorded. Before that it returns
// ErrRunning. The caller then ends the holder with finish.
func (h *holder) forget() error {
	h.mu.Lock()
	over := h.exit != nil
	h.mu.Unlock()
	if !over {
		return ErrRunning
	}
	return h.closeSocket()
}

// statusOf translates an error for a reply.
func statusOf(err error) (status uint8, text string) {
	switch {
	case err == nil:
		return statusOK, ""
	case errors.Is(err, os.ErrClosed):
		return statusClosed, err.Error()
	case errors.Is(err, ErrRunning):
		return statusRunning, err.Error()
	case errors.Is(err, pty.ErrNoFeed):
		return statusNoFeed, err.Error()
	default:
		return statusError, err.Error()
	}
}
