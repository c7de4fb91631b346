package holder

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"tether/agent/flow"
	"tether/internal/change"
	"tether/platform/rawio"
)

const (
	helloTime = 5 * time.Second // for the hellos of both sides
	flushTime = time.Second     // for the last frames of a connection

	little    = 1 << 10  // bytes that are sent at once, see flow.Gather
	frame     = 64 << 10 // bytes that are sent together otherwise
	minWindow = 64 << 10 // bytes
	maxWindow = 16 << 20 // bytes

	maxControl = 256 // frames queued for a daemon that asks but does not read
	maxKills   = 4   // of one connection at a time
)

// session is one connected daemon. Two goroutines serve it: serve reads its frames,
// publish writes to it. Either may find first that the connection has ended.
type session struct {
	// Set at construction.
	h        *holder
	conn     net.Conn
	features uint64        // agreed
	wake     chan struct{} // 1 slot: there may be something to write
	gone     chan struct{} // closed by serve when nothing can be read any more; ends publish

	// Guarded by h.mu.
	control   [][]byte      // encoded frames, written before output
	closing   bool          // publish closes the connection after the frames in control
	streaming bool          // the daemon has asked for output
	next      int64         // offset of the next byte to send
	taken     int64         // offset up to which the daemon has taken output; before it streams, the log's start that it was told
	window    int64         // bytes that may be in transit
	rest      time.Duration // how long the pump rests between bursts of a flood; 0: not at all
	until     int64         // offset beyond which the child waits a little, see holdBrieflyLocked; NoOffset: it never waits
	spent     bool          // the child has used up its budget of waiting, and waits again only once until is far ahead of the log
	gather    flow.Gather
	pausing   bool // publish looks again by itself after the pause
	kills     map[uint32]func()
	feeds     int                // pieces of standard input that were not accepted yet
	feeding   context.Context    // ends when the daemon is replaced or gone: pieces that were not accepted are dropped
	drop      context.CancelFunc // ends feeding
}

// serve speaks with one daemon until the connection ends.
func (h *holder) serve(conn net.Conn) {
	defer conn.Close()
	quick := rawio.Wrap(conn) // not for greet: only the socket itself passes a descriptor
	r := bufio.NewReaderSize(quick, 1<<10)
	agreed, err := greet(conn, r, h.key, h.spec.ID, h.check, h.child)
	if err != nil {
		return
	}
	s := &session{
		h: h, conn: quick, features: agreed, wake: make(chan struct{}, 1), gone: make(chan struct{}),
		until: NoOffset, gather: flow.Gather{Little: little}, kills: map[uint32]func(){},
	}
	s.feeding, s.drop = context.WithCancel(h.ctx)
	defer s.drop()
	h.connected(s)
	var writer sync.WaitGroup
	writer.Go(s.publish)
	s.read(&frames{r: r, known: func(k kind) bool { return k >= kindStream && k <= kindDrop && k != kindProof }})
	close(s.gone)
	h.leave(s)
	_ = quick.SetWriteDeadline(time.Now().Add(flushTime)) // a daemon that does not read must not keep publish in a write
	writer.Wait()
}

// connected makes s the connected daemon, closes the session of the former one, and
// queues the holder's state for s.
func (h *holder) connected(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.session; old != nil {
		h.keepTakenLocked(old)
		old.drop()
		old.closeLocked(bytesFrame(kindReplaced, nil))
	}
	h.session = s
	h.unfed()
	h.free = false
	if s.features&featureKeep == 0 {
		h.keep = NoOffset // this daemon cannot change what the former one has asked for
	}
	s.taken = h.log.Start()
	s.controlLocked(state{
		base: h.log.Start(), end: h.log.End(), taken: h.taken, started: h.started,
		pid: h.child.Pid(), size: h.size, limit: int64(h.log.Limit()),
	}.frame())
	s.controlLocked(bytesFrame(kindMeta, h.meta))
	for _, c := range h.notes.all {
		s.controlLocked(c.frame(kindNote))
	}
	if s.features&featureScreen != 0 {
		for _, c := range h.screens.all {
			s.controlLocked(c.frame(kindShown))
		}
	}
	if h.exit != nil {
		s.controlLocked(h.exit.frame())
	}
	s.controlLocked(bytesFrame(kindReady, nil))
	select {
	case <-h.finished: // the holder is about to end
		s.closeLocked(nil)
	default:
	}
	h.movedLocked()
}

// leave undoes connected, unless another daemon has taken over, and drops input of s that
// writeInput has not taken.
func (h *holder) leave(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == s {
		h.keepTakenLocked(s)
		h.session = nil
		h.unfed()
		h.movedLocked()
	}
	select {
	case in := <-h.inputs:
		if in.from != s {
			h.inputs <- in // does not block: senders hold h.mu, so the slot is still free
		}
	default:
	}
}

// keepTakenLocked remembers the furthest offset that any daemon has taken.
func (h *holder) keepTakenLocked(s *session) {
	if s.streaming {
		h.taken = max(h.taken, s.taken)
	}
}

// poke makes publish look for something to write. It does not block.
func (s *session) poke() {
	change.Wake(s.wake)
}

// controlLocked queues a frame. It closes the connection of a daemon that lets maxControl
// frames pile up.
func (s *session) controlLocked(frame []byte) {
	if s.closing {
		return
	}
	if len(s.control) >= maxControl {
		s.conn.Close()
		return
	}
	s.control = append(s.control, frame)
	s.poke()
}

// closeLocked has publish send the queued frames and a last one, nil for none, and then
// close the connection. A daemon that does not read them within flushTime loses them.
func (s *session) closeLocked(last []byte) {
	if last != nil {
		s.controlLocked(last)
	}
	s.closing = true
	_ = s.conn.SetWriteDeadline(time.Now().Add(flushTime))
	s.poke()
}

func (s *session) reply(request uint32, err error) {
	status, text := statusOf(err)
	s.h.mu.Lock()
	s.controlLocked(reply{request, status, text}.frame())
	s.h.mu.Unlock()
}

// read handles the daemon's frames until the connection ends, or a frame is malformed.
func (s *session) read(in *frames) {
	for {
		k, size, err := in.next()
		if err != nil {
			return
		}
		p, err := in.payload(size)
		if err != nil || s.handle(k, p) != nil {
			return
		}
	}
}
