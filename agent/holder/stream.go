package holder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Window bounds the output in transit: a daemon may have received so many bytes beyond
// Taken. It is the most that a daemon holds in memory for one terminal that it does not
// read.
const Window = 256 << 10 // bytes

// ackEvery is how many bytes may be read without an acknowledgement while there is more
// to read.
const ackEvery = Window / 4 // bytes

// ackLate is the time after which less than ackEvery is acknowledged, too. Otherwise the
// holder would treat a slow reader as one that has stopped.
const ackLate = time.Second

// If Direct's function has taken less than ackLittle, the acknowledgement is delayed by
// ackSoon: one for each key would cost daemon and holder as much as the key's echo. The
// delay slows nothing, because the holder sends 1 KiB without waiting for an
// acknowledgement.
const (
	ackLittle = 512 // bytes
	ackSoon   = 20 * time.Millisecond
)

// inflow is output that has arrived but was not read. The Client's mu guards it, except
// that while filling is set, the bytes after w of the last chunk belong to readData. A
// client with nothing to read holds no chunk.
type inflow struct {
	streaming bool
	pos       int64 // offset of the next byte of Read
	end       int64 // offset after the last byte that arrived
	acked     int64 // offset of the last taken frame
	ackedAt   time.Time
	soon      int64 // offset to acknowledge when the timer of ackSoon fires; 0 if it does not run
	chunks    []*chunk
	filling   bool
	gaps      []GapError // ascending; at From output is missing
	waiting   bool       // Read or WaitReadable waits
	taking    bool       // Direct's function is running: Read and WaitReadable do not return
}

// chunk is a piece of the arrived output, from r to w.
type chunk struct {
	r, w int
	buf  [maxData]byte
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

var errStreaming = errors.New("holder: StreamFrom was called before")

// StreamFrom asks for the output from off on, which must not be beyond End. It must be
// called once before Read. If off is before Base, Read returns a GapError first.
func (c *Client) StreamFrom(off int64) error {
	if off < 0 || off > c.state.end {
		return fmt.Errorf("stream from %d: the holder has %d to %d", off, c.state.base, c.state.end)
	}
	c.mu.Lock()
	if c.in.streaming {
		c.mu.Unlock()
		return errStreaming
	}
	c.in = inflow{streaming: true, pos: off, end: off, acked: off}
	c.mu.Unlock()
	return c.send(endFrame(binary.BigEndian.AppendUint32(beginAt(kindStream, off), uint32(Window))))
}

// readData moves the bytes of a data frame into chunks.
func (c *Client) readData(in *frames, size int) error {
	if size < 8 || size > 8+maxData {
		return errSize
	}
	p, err := in.payload(8)
	if err != nil {
		return err
	}
	f := fields{b: p}
	off := f.offset()
	if err := c.expect(off, size-8, f.bad); err != nil {
		return err
	}
	given := false
	for left := size - 8; left > 0; {
		last, direct := c.lastChunk()
		room := last.buf[last.w:min(last.w+left, maxData)]
		if direct {
			room = room[:min(len(room), maxDirect)]
		}
		n, err := in.r.Read(room)
		left -= n
		if given = direct && n > 0 && c.give(room[:n]); given {
			chunks.Put(last)
		} else {
			c.arrived(last, n, direct)
		}
		if err != nil {
			return err
		}
	}
	in.owes = given // if not given, Read returns it and acknowledges it later
	return nil
}

// expect checks that n bytes at off may come now, and notes a gap before them.
func (c *Client) expect(off int64, n int, bad bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := &c.in
	if bad || !in.streaming || off < in.end || in.end-in.acked+int64(n) > Window || off > 1<<62 {
		return errFrame
	}
	if off > in.end {
		in.gaps = append(in.gaps, GapError{in.end, off})
		if in.pos == in.end && in.acked == in.end {
			in.acked = off // nothing is in transit, so the gap takes no room in the window
		}
		in.end = off
	}
	return nil
}

// lastChunk returns a chunk with room for output that arrives. If Direct's function may
// take the output, direct is true, and the chunk is a new one that is not in the list.
func (c *Client) lastChunk() (last *chunk, direct bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	direct = c.direct != nil && c.in.waiting && c.in.pos == c.in.end
	if n := len(c.in.chunks); n > 0 && c.in.chunks[n-1].w < maxData {
		c.in.filling = true
		return c.in.chunks[n-1], false
	}
	last = chunks.Get().(*chunk)
	last.r, last.w = 0, 0
	if !direct {
		c.in.filling = true
		c.in.chunks = append(c.in.chunks, last)
	}
	return last, direct
}

// arrived records n more bytes in last, and adds last to the list if isNew.
func (c *Client) arrived(last *chunk, n int, isNew bool) {
	c.mu.Lock()
	if isNew {
		c.in.chunks = append(c.in.chunks, last)
	}
	last.w += n
	c.in.filling = false
	c.in.end += int64(n)
	c.changed.Broadcast()
	c.mu.Unlock()
}

// WaitReadable blocks until Read would not.
func (c *Client) WaitReadable() error {
	c.acknowledge()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readableLocked()
}

// readableLocked waits until there are bytes or a gap to read, or returns the error that
// says that there will be none.
func (c *Client) readableLocked() error {
	in := &c.in
	defer func() { in.waiting = false }()
	for {
		switch {
		case in.taking:
		case c.detached:
			return c.err
		case !in.streaming:
			return errors.New("holder: Read before StreamFrom")
		case in.pos < in.end:
			return nil
		case c.exit != nil && in.pos >= c.exit.end:
			return io.EOF
		case c.err != nil:
			return c.err
		}
		in.waiting = true
		c.changed.Wait()
	}
}

// acknowledge tells the holder how much output earlier calls of Read have returned: at
// once if nothing more waits or the last acknowledgement is ackLate ago, otherwise in
// steps of ackEvery.
func (c *Client) acknowledge() {
	if off := c.toAcknowledge(false); off > 0 {
		_ = c.send(takenFrame(off, c.rest())) // if it fails, readableLocked says why
	}
}

// toAcknowledge returns the offset to acknowledge now, or 0. more says that more has
// arrived that is not in c.in yet.
func (c *Client) toAcknowledge(more bool) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := &c.in
	off := in.pos
	if off <= in.acked || (more || off < in.end) && off-in.acked < ackEvery && time.Since(in.ackedAt) < ackLate {
		return 0
	}
	in.acked, in.ackedAt = off, time.Now()
	return off
}

// Read returns output, io.EOF after the last byte of an exited child, a *GapError where
// output is missing, and the error of Err when the connection is over and all arrived
// output was read. Returned output counts as taken with the next call of Read or
// WaitReadable: from then on the holder may drop it when its log is full.
func (c *Client) Read(p []byte) (int, error) {
	c.acknowledge()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.readableLocked(); err != nil {
		return 0, err
	}
	in := &c.in
	if len(in.gaps) > 0 && in.gaps[0].From == in.pos {
		gap := in.gaps[0]
		in.gaps = in.gaps[1:]
		in.pos = gap.To
		c.changed.Broadcast() // Wait
		return 0, &gap
	}
	if len(in.gaps) > 0 {
		p = p[:min(int64(len(p)), in.gaps[0].From-in.pos)]
	}
	n := in.read(p)
	if in.pos == in.end && (c.exit != nil || c.err != nil) {
		c.changed.Broadcast() // Wait
	}
	return n, nil
}

// read copies out available output, at most up to the next gap.
func (in *inflow) read(p []byte) int {
	n := 0
	for n < len(p) && len(in.chunks) > 0 {
		first := in.chunks[0]
		m := copy(p[n:], first.buf[first.r:first.w])
		first.r += m
		n += m
		if first.r < first.w || len(in.chunks) == 1 && in.filling {
			break
		}
		in.chunks = in.chunks[1:]
		chunks.Put(first)
	}
	in.pos += int64(n)
	return n
}

// Direct makes the goroutine that reads the connection call take with output as it
// arrives, while a call of Read or WaitReadable waits for output, so that no other
// goroutine must be woken. That call does not return while take runs. take must not block
// or keep p. If it returns false it has taken nothing, and Read returns the output.
// Direct must be called before StreamFrom.
func (c *Client) Direct(take func(p []byte) bool) { c.direct = take }

// maxDirect bounds the output that is passed to Direct's function at a time.
const maxDirect = 64 << 10 // bytes

// give passes p to Direct's function, and reports whether that has taken it.
func (c *Client) give(p []byte) bool {
	c.mu.Lock()
	in := &c.in
	in.taking = in.waiting && !c.detached
	given := in.taking
	c.mu.Unlock()
	if !given {
		return false
	}
	taken := c.direct(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	in.taking = false
	if taken {
		in.end += int64(len(p))
		in.pos = in.end
	}
	if c.detached || c.exit != nil {
		c.changed.Broadcast()
	}
	return taken
}

// acknowledgeDirect is acknowledge for output that Direct's function has taken. It is
// called before each frame; if more has arrived already, of whatever kind, it may leave
// the acknowledgement to a later call. The goroutine that reads the connection calls it,
// so it must not wait for the end of the connection.
func (c *Client) acknowledgeDirect(in *frames) {
	in.owes = in.r.Buffered() > 0
	if !in.owes && c.acknowledgeSoon() {
		return
	}
	if off := c.toAcknowledge(in.owes); off > 0 {
		_ = c.write(takenFrame(off, c.rest())) // if it fails, so does the next read
	}
}

// acknowledgeSoon starts the timer of ackSoon, if less than ackLittle is unacknowledged
// and the child has not exited. Otherwise it returns false.
func (c *Client) acknowledgeSoon() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := &c.in
	if in.pos-in.acked >= ackLittle || c.exit != nil {
		return false
	}
	if in.soon == 0 {
		time.AfterFunc(ackSoon, c.acknowledgeDue)
	}
	in.soon = in.pos
	return true
}

// acknowledgeDue sends the delayed acknowledgement, after ackSoon.
func (c *Client) acknowledgeDue() {
	c.mu.Lock()
	off := c.in.soon
	c.in.soon = 0
	due := off > c.in.acked
	if due {
		c.in.acked, c.in.ackedAt = off, time.Now()
	}
	c.mu.Unlock()
	if due {
		_ = c.write(takenFrame(off, c.rest())) // if it fails, so does the next read
	}
}
