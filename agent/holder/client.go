package holder

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"tether/platform/pty"
)

// Client is a daemon's connection to one holder. It has the methods of
// term.PTY. Its methods may be called concurrently, but Read and WaitReadable
// only from one goroutine at a time.
//
//	connected ──StreamFrom──▶ streaming ──Close, replaced, holder gone──▶ over
//
// It has one goroutine, which ends with the connection; if this process has
// started the holder, with the holder, for which it then waits.
type Client struct {
	// Set at construction.
	id       string
	path     string // of the socket
	conn     net.Conn
	process  *os.Process // the holder if this process started it, else nil
	features uint64      // agreed
	state    state       // when connected
	notes    []Checkpoint
	over     chan struct{} // closed by readLoop when the connection has ended
	reaped   chan struct{} // closed when process was waited for, if there is one
	typing   chan struct{} // 1 slot: one piece of input at a time

	wmu sync.Mutex // serialises writes to conn; held across a write, which Close unblocks

	mu       sync.Mutex
	changed  sync.Cond // of mu: anything below
	in       inflow
	meta     []byte
	exit     *exitRecord
	err      error // why the connection has ended
	detached bool  // nobody wants to know of what is left
	requests map[uint32]chan reply
	lastID   uint32
}

// newClient says hello on conn, which leads to the socket at path, and reads
// what the holder id has. It takes conn over.
func newClient(ctx context.Context, id, path string, conn net.Conn, process *os.Process) (*Client, error) {
	c := &Client{
		id: id, path: path, conn: conn, process: process, over: make(chan struct{}), reaped: make(chan struct{}), typing: make(chan struct{}, 1),
		requests: map[uint32]chan reply{},
	}
	c.changed.L = &c.mu
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	in, err := c.handshake()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("connect to holder %s: %w", id, err)
	}
	go c.readLoop(in)
	return c, nil
}

func (c *Client) handshake() (*frames, error) {
	if err := c.conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(ourHello().append(nil)); err != nil {
		return nil, err
	}
	in := &frames{r: bufio.NewReaderSize(c.conn, 4<<10), known: func(k kind) bool { return k >= kindState && k <= kindReplaced }}
	theirs, err := readHello(in.r)
	if err != nil {
		return nil, err
	}
	if _, err := theirs.agree(); err != nil {
		return nil, err
	}
	c.features = theirs.features & features
	for ready := false; !ready; {
		if ready, err = c.readFirst(in); err != nil {
			return nil, err
		}
	}
	return in, c.conn.SetDeadline(time.Time{})
}

// readFirst handles one of the frames before ready.
func (c *Client) readFirst(in *frames) (ready bool, err error) {
	k, size, err := in.next()
	if err != nil {
		return false, err
	}
	p, err := in.payload(size)
	if err != nil {
		return false, err
	}
	switch k {
	case kindState:
		c.state, err = decodeState(p)
	case kindMeta:
		c.meta = slices.Clone(p)
	case kindNote:
		var note Checkpoint
		note, err = decodeCheckpoint(&fields{b: p})
		c.notes = append(c.notes, note)
	case kindReady:
		return true, nil
	case kindExit:
		err = c.gotExit(p)
	case kindReplaced:
		err = ErrReplaced
	default:
		err = errFrame
	}
	return false, err
}

// readLoop handles the holder's frames until the connection ends.
func (c *Client) readLoop(in *frames) {
	var err error
	for err == nil {
		err = c.readFrame(in)
	}
	c.conn.Close()
	c.mu.Lock()
	if c.err == nil {
		c.err = ErrLost
		if errors.Is(err, errFrame) || errors.Is(err, errSize) || errors.Is(err, ErrReplaced) {
			c.err = err
		}
	}
	for _, answer := range c.requests {
		close(answer)
	}
	c.requests = nil
	c.changed.Broadcast()
	c.mu.Unlock()
	close(c.over)
	if c.process != nil {
		_, _ = c.process.Wait()
		close(c.reaped)
	}
}

func (c *Client) readFrame(in *frames) error {
	k, size, err := in.next()
	if err != nil {
		return err
	}
	if k == kindData {
		return c.readData(in, size)
	}
	p, err := in.payload(size)
	if err != nil {
		return err
	}
	switch k {
	case kindReply:
		return c.gotReply(p)
	case kindExit:
		return c.gotExit(p)
	case kindReplaced:
		return ErrReplaced
	default:
		return errFrame
	}
}

func (c *Client) gotReply(p []byte) error {
	r, err := decodeReply(p)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.requests[r.request]; ok { // else nobody waits for it any more
		delete(c.requests, r.request)
		answer <- r // has room for it
	}
	return nil
}

func (c *Client) gotExit(p []byte) error {
	e, err := decodeExit(p)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		c.exit = &e
	}
	c.changed.Broadcast()
	return nil
}

// send writes one frame.
func (c *Client) send(frame []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	if _, err := c.conn.Write(frame); err != nil {
		return c.ended()
	}
	return nil
}

// ended says why the connection is over. A write failed, so the holder has
// closed it; what it said before is still to be read.
func (c *Client) ended() error {
	<-c.over
	return c.Err()
}

// begin registers a request whose frame put makes, and sends it. The answer's
// channel is closed when the connection ends.
func (c *Client) begin(k kind, put func(frame []byte) []byte) (id uint32, answer chan reply, err error) {
	c.mu.Lock()
	if c.err != nil || c.requests == nil {
		err := c.err
		c.mu.Unlock()
		return 0, nil, err
	}
	c.lastID++
	id, answer = c.lastID, make(chan reply, 1)
	c.requests[id] = answer
	c.mu.Unlock()
	frame := appendRequest(nil, k, id)
	if put != nil {
		frame = put(frame)
	}
	return id, answer, c.send(endFrame(frame, 0))
}

// ask sends a request and waits for the answer, as long as it takes.
func (c *Client) ask(k kind, put func(frame []byte) []byte) error {
	_, answer, err := c.begin(k, put)
	if err != nil {
		return err
	}
	return c.outcome(<-answer)
}

// Bounds of the wait for a holder that was stopped: whoever asks must not stand
// still with it.
const (
	answerTime = 10 * time.Second // for what a holder does at once
	cancelTime = 3 * time.Second  // for the end of a kill whose grace was ended
)

// errSilent is returned when a holder does not answer.
var errSilent = errors.New("the holder does not answer")

// askSoon is ask for what a holder does at once.
func (c *Client) askSoon(k kind, put func(frame []byte) []byte) error {
	id, answer, err := c.begin(k, put)
	if err != nil {
		return err
	}
	return c.await(id, answer, answerTime)
}

// await waits so long for the answer.
func (c *Client) await(id uint32, answer chan reply, within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case r := <-answer:
		return c.outcome(r)
	case <-timer.C:
	}
	c.mu.Lock()
	delete(c.requests, id)
	c.mu.Unlock()
	return errSilent
}

// outcome is the error of an answer; the zero reply, which has no request,
// stands for the end of the connection.
func (c *Client) outcome(r reply) error {
	switch {
	case r.request == 0:
		return c.Err()
	case r.status == statusOK:
		return nil
	case r.status == statusClosed:
		return &remoteError{r.text, os.ErrClosed}
	case r.status == statusRunning:
		return ErrRunning
	default:
		return &remoteError{text: r.text}
	}
}

// ID is the id the holder was spawned with.
func (c *Client) ID() string { return c.id }

// Pid is the process id of the child.
func (c *Client) Pid() int { return c.state.pid }

// Started is when the child was started, by the wall clock of then.
func (c *Client) Started() time.Time { return c.state.started }

// Base is the offset of the oldest byte the holder had when the Client
// connected.
func (c *Client) Base() int64 { return c.state.base }

// End is the offset after the newest byte of then.
func (c *Client) End() int64 { return c.state.end }

// Taken is up to where any daemon had read the stream then. What lies between
// it and Base, if it is less, was lost.
func (c *Client) Taken() int64 { return c.state.taken }

// Size is the size of the terminal when the Client connected.
func (c *Client) Size() pty.Size { return c.state.size }

// Checkpoints returns the notes the holder had when the Client connected,
// ascending by offset. At most one is before Base: the newest of all, if none is
// in the log. The caller must not change them.
func (c *Client) Checkpoints() []Checkpoint { return c.notes }

// Meta returns what Spawn or this Client's SetMeta set last.
func (c *Client) Meta() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.meta)
}

// SetMeta replaces the meta, at most 64 KiB, and returns when the holder has
// it.
func (c *Client) SetMeta(p []byte) error {
	if len(p) > maxBlob {
		return tooLarge("meta", len(p))
	}
	err := c.askSoon(kindSetMeta, func(frame []byte) []byte { return append(frame, p...) })
	if err != nil {
		return fmt.Errorf("set meta: %w", err)
	}
	c.mu.Lock()
	c.meta = slices.Clone(p)
	c.mu.Unlock()
	return nil
}

// Checkpoint leaves a note of at most 64 KiB about the stream at off, which
// must be in the holder's log, and returns when the holder has it. The holder
// keeps the oldest note in its log and the newest of all; of those
// in between it keeps, evenly spread, as many as make 64, or 1 MiB, in all.
func (c *Client) Checkpoint(off int64, blob []byte) error {
	if len(blob) > maxBlob {
		return tooLarge("checkpoint", len(blob))
	}
	err := c.askSoon(kindCheckpoint, func(frame []byte) []byte {
		return append(binary.BigEndian.AppendUint64(frame, uint64(off)), blob...)
	})
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// Keep says from which offset on output is needed although Read has returned
// it, or, if it is KeepNothing, that none is. Without it what the holder has of
// such output, when this Client is gone, is what happens to be left. A holder
// that is full of what is needed makes the child wait as it does for output that
// was not read. It does not wait; a holder of an older program takes no notice.
func (c *Client) Keep(off int64) error {
	if c.features&featureKeep == 0 {
		return nil
	}
	return c.send(appendKeep(nil, off))
}

// KeepNothing is for Keep.
const KeepNothing int64 = keepNothing

// Signal sends a signal, by its name with or without SIG, to the process group
// in the foreground, as pty.PTY.Signal does. ErrNoSignal is returned when the
// holder is of an older program.
func (c *Client) Signal(name string) error {
	if c.features&featureSignal == 0 {
		return ErrNoSignal
	}
	if len(name) > maxSignal {
		return fmt.Errorf("no signal is called %.40q", name)
	}
	err := c.askSoon(kindSignal, func(frame []byte) []byte { return append(frame, name...) })
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	return nil
}

// Resize changes the size of the terminal.
func (c *Client) Resize(s pty.Size) error {
	err := c.askSoon(kindResize, func(frame []byte) []byte {
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(frame, s.Cols), s.Rows)
	})
	if err != nil {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// Write sends input and returns when the terminal has taken all of it; it
// blocks while the child does not read. Close ends it; how much the terminal
// took is then not known.
func (c *Client) Write(p []byte) (n int, err error) {
	select {
	case c.typing <- struct{}{}:
		defer func() { <-c.typing }()
	case <-c.over:
		return 0, c.Err()
	}
	for piece := range slices.Chunk(p, maxInput) {
		err := c.ask(kindInput, func(frame []byte) []byte { return append(frame, piece...) })
		if err != nil {
			return n, fmt.Errorf("write terminal: %w", err)
		}
		n += len(piece)
	}
	return n, nil
}

// Kill ends the child and all that descends from it, as pty.PTY.Kill does, in
// the holder: it goes on if the connection ends. Cancelling ctx ends the
// grace early; a holder that then does not answer within 3 s is an error. An
// exit that it causes is reported as any other.
func (c *Client) Kill(ctx context.Context, grace time.Duration) error {
	ms := min(max(grace.Milliseconds(), 0), int64(^uint32(0)))
	id, answer, err := c.begin(kindKill, func(frame []byte) []byte { return binary.BigEndian.AppendUint32(frame, uint32(ms)) })
	if err != nil {
		return fmt.Errorf("kill terminal's processes: %w", err)
	}
	select {
	case r := <-answer:
		return c.outcome(r)
	case <-ctx.Done():
	}
	if err := c.send(endFrame(appendRequest(nil, kindCancel, id), 0)); err != nil {
		return err
	}
	return c.await(id, answer, cancelTime)
}

// Wait blocks until the child has ended, or the connection has, and, if the
// Client streams, Read has returned all there is; Detach ends it at once. It
// tells how the child ended, or code -1 if that is not known: Err says why.
func (c *Client) Wait() pty.Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.settledLocked() {
		c.changed.Wait()
	}
	if c.exit == nil {
		return pty.Exit{Code: -1}
	}
	return c.exit.exit
}

func (c *Client) settledLocked() bool {
	switch {
	case c.detached:
		return true
	case c.err != nil:
		return !c.in.streaming || c.in.pos >= c.in.end
	case c.exit != nil:
		return !c.in.streaming || c.in.pos >= c.exit.end
	default:
		return false
	}
}

// Exit tells how the child ended, if it has, without waiting for the last
// output to be read.
func (c *Client) Exit() (pty.Exit, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		return pty.Exit{}, false
	}
	return c.exit.exit, true
}

// ExitedAt is when the child ended, the zero time if it has not, and the
// offset at which its output ended.
func (c *Client) ExitedAt() (at time.Time, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		return time.Time{}, 0
	}
	return c.exit.at, c.exit.end
}

// Done is closed when the connection is over.
func (c *Client) Done() <-chan struct{} { return c.over }

// Err says why the connection is over, nil while it is not: ErrDetached,
// ErrReplaced, ErrLost, or an error of the framing.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Gone reports whether the holder has ended, which the end of the connection
// alone does not say. A holder that was killed may take a moment to be gone, so
// this waits up to a second for it. What it has left in its directory is
// removed.
func (c *Client) Gone() bool {
	if err := c.Err(); err == nil || errors.Is(err, ErrReplaced) {
		return false
	}
	const look = 5 * time.Millisecond
	for end := time.Now().Add(time.Second); ; {
		if removeDead(c.path) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(look)
	}
}

// Forget says that the exit was recorded: the holder removes its socket and
// ends. It returns when that is done, or ctx ends; before the exit it returns
// ErrRunning. The Client is over then.
func (c *Client) Forget(ctx context.Context) error {
	_, answer, err := c.begin(kindForget, nil)
	if err != nil {
		return fmt.Errorf("forget terminal: %w", err)
	}
	var r reply
	select {
	case r = <-answer:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.outcome(r); err != nil {
		return fmt.Errorf("forget terminal: %w", err)
	}
	ended := c.over
	if c.process != nil {
		ended = c.reaped
	}
	select {
	case <-ended:
		c.conn.Close()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Detach ends the connection; the holder and the child live on. It wakes
// everything that waits. A second call does nothing.
func (c *Client) Detach() error {
	c.mu.Lock()
	c.detached = true
	if c.err == nil {
		c.err = ErrDetached
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	c.conn.Close()
	<-c.over
	return nil
}

// Close is Detach.
func (c *Client) Close() error { return c.Detach() }
