package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"tether/internal/jsonspan"
)

// A BinaryChannel is a [Channel] that also carries binary messages, for [Peer.Stream].
// Its methods are called as those of the Channel are.
type BinaryChannel interface {
	// SendBinary is Send for a binary message.
	SendBinary(ctx context.Context, msg []byte) error

	// Binary reports whether the message that Recv returned last is binary.
	Binary() bool
}

const (
	// streamMessage is the most that one message has of a stream, in bytes: with it, a
	// message fits the first receive buffer of package wsconn.
	streamMessage = 15 << 10
	// streamAhead bounds what Write has queued, in bytes.
	streamAhead = 64 << 10
	// streamWindow bounds what is on its way to the other side, and waits there to be
	// read, in bytes.
	streamWindow = 1 << 20
	// streamStep is after how many bytes a reader says that it has taken them. A window
	// is never smaller than twice that.
	streamStep = 16 << 10
	// streamTurn is how many other messages may leave before one of the stream that
	// waits.
	streamTurn = 16
)

var (
	errNoStream     = errors.New("jsonrpc: this connection carries no stream")
	errStreamOpen   = errors.New("jsonrpc: the stream is open already")
	errBinary       = errors.New("jsonrpc: received a binary message, which belongs to no stream")
	errStreamWindow = errors.New("jsonrpc: received more of the stream than was allowed")
	errManyStreams  = errors.New("jsonrpc: the other side begins and ends streams faster than it reads")
	errTaken        = errors.New("jsonrpc: the other side says that it has taken what was not sent")
)

// Stream begins a stream of bytes beside the messages, which the other side gets by
// [Options.Accept]. There is one at a time: it is an error if one is open, if
// [Options.Taken] is not set, or if the channel is no [BinaryChannel].
//
// What is written leaves behind all messages that are queued, but does not wait for ever
// behind them; it is bounded by what the other side has read. Close lets queued bytes
// leave and ends the stream for both sides: the other side reads io.EOF after them. The
// next stream may begin at once. The end of the peer ends the stream with [ErrClosed].
// Deadlines are not supported.
func (p *Peer) Stream() (net.Conn, error) {
	if p.binary == nil || p.opts.Taken == "" {
		return nil, errNoStream
	}
	b := &p.beside
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.ended != nil:
		return nil, b.ended
	case b.open != nil:
		return nil, errStreamOpen
	}
	return b.beginLocked(p), nil
}

// beside is the streams of a peer, of which at most one is open. An empty message ends
// one. It has a lock of its own, which is taken after the peer's. It stands here,
// although bytes are no JSON-RPC, because one writer decides whether a message or bytes
// leave next.
type beside struct {
	mu   sync.Mutex
	room sync.Cond // out has shrunk, or the stream has ended

	open  *stream // nil if there is none
	ends  int     // of streams that this side has closed, still to come from the other side: what comes before is dropped
	ended error   // of the peer; nil while it runs

	out         queue // messages to be sent
	sent, acked int64 // bytes so far, and of these what the other side has taken
	taken, told int64 // bytes so far that this side has taken, and of these what the other side knows
	passed      int   // messages that have overtaken the first of out
	pace        pacer
}

// A stream is one end of a stream. Its fields are guarded by the lock of beside.
type stream struct {
	p    *Peer
	more sync.Cond // in has grown, or the stream has ended

	in   queue
	part []byte   // of the first message of in, what is not read yet
	from outgoing // that message
	over error    // what Read returns after in, and Write at once; nil while the stream is open
}

func (b *beside) beginLocked(p *Peer) *stream {
	s := &stream{p: p}
	s.more.L = &b.mu
	b.open = s
	return s
}

// Read implements net.Conn.
func (s *stream) Read(to []byte) (n int, err error) {
	b := &s.p.beside
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(to) > 0 && len(s.part) == 0 && s.in.empty() {
		if s.over != nil {
			return 0, s.over
		}
		s.more.Wait()
	}
	for n < len(to) && (len(s.part) > 0 || !s.in.empty()) {
		if len(s.part) == 0 {
			s.from = s.in.pop()
			s.part = s.from.data
		}
		m := copy(to[n:], s.part)
		if n, s.part = n+m, s.part[m:]; len(s.part) == 0 {
			s.in.release(s.from)
			s.from = outgoing{}
		}
	}
	b.takeLocked(s.p, n)
	return n, nil
}

// takeLocked counts n bytes that this side has taken, and tells the other side if they
// are many.
func (b *beside) takeLocked(p *Peer, n int) {
	if b.taken += int64(n); b.taken-b.told >= streamStep {
		p.wakeWriter()
	}
}

// taking is the params of [Options.Taken].
type taking struct {
	Bytes int64 `json:"bytes"`
}

// notice returns the notification that tells the other side what was taken, nil if there
// is none to send now.
func (b *beside) notice(method string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken-b.told < streamStep {
		return nil
	}
	msg, err := encodeRequest(0, method, taking{b.taken})
	if err != nil {
		return nil // impossible: it is a number
	}
	b.told = b.taken
	return msg
}

// Write implements net.Conn.
func (s *stream) Write(data []byte) (n int, err error) {
	b := &s.p.beside
	for len(data) > 0 {
		b.mu.Lock()
		for s.over == nil && b.out.cost >= streamAhead {
			b.room.Wait()
		}
		if s.over != nil {
			b.mu.Unlock()
			if s.over == io.EOF {
				return n, io.ErrClosedPipe
			}
			return n, s.over
		}
		m := b.out.extend(data[:min(len(data), streamMessage)], streamMessage)
		b.mu.Unlock()
		s.p.wakeWriter()
		n, data = n+m, data[m:]
	}
	return n, nil
}

// Close implements net.Conn.
func (s *stream) Close() error {
	b := &s.p.beside
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == s {
		b.endLocked(s.p, net.ErrClosed)
		b.ends++
	}
	if s.over == io.EOF {
		s.over = net.ErrClosed
	}
	b.takeLocked(s.p, s.dropLocked())
	return nil
}

// dropLocked forgets what is not read yet, and returns how many bytes that is.
func (s *stream) dropLocked() (n int) {
	n = len(s.part)
	for _, m := range s.in.msgs[s.in.head:] {
		n += len(m.data)
	}
	s.in.drop()
	s.part, s.from = nil, outgoing{}
	return n
}

// endLocked ends the open stream at this side, and tells the other side.
func (b *beside) endLocked(p *Peer, why error) {
	b.stopLocked(why)
	b.out.push(nil)
	p.wakeWriter()
}

func (b *beside) stopLocked(why error) {
	if s := b.open; s != nil {
		b.open, s.over = nil, why
		s.more.Broadcast()
		b.room.Broadcast()
	}
}

// received takes a binary message. An error ends the connection.
func (b *beside) received(p *Peer, msg []byte) error {
	if p.opts.Taken == "" {
		return errBinary
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.out.cost > 2*streamAhead: // so many ends are queued
		return errManyStreams
	case b.ends > 0 && len(msg) == 0:
		b.ends--
	case b.ends > 0:
		b.takeLocked(p, len(msg))
	case b.open != nil && len(msg) == 0:
		b.endLocked(p, io.EOF)
	case b.open == nil && (p.opts.Accept == nil || len(msg) == 0):
		return errBinary
	default:
		if b.open == nil {
			s := b.beginLocked(p)
			b.mu.Unlock()
			p.opts.Accept(s)
			b.mu.Lock()
			if b.open != s { // it was closed at once
				b.takeLocked(p, len(msg))
				return nil
			}
		}
		s := b.open
		if s.in.cost+len(msg) > streamWindow+chunkSize {
			return errStreamWindow
		}
		for len(msg) > 0 {
			msg = msg[s.in.extend(msg, chunkSize):]
		}
		s.more.Signal()
	}
	return nil
}

// confirmed takes the other side's notification that it has taken bytes.
func (b *beside) confirmed(p *Peer, params []byte) error {
	var taken taking
	if jsonspan.Unmarshal(params, &taken) != nil {
		return errTaken
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if taken.Bytes < b.acked || taken.Bytes > b.sent {
		return errTaken
	}
	if n := taken.Bytes - b.acked; n > 0 {
		b.pace.taken(taken.Bytes, n, b.sent-b.acked, time.Now())
		b.acked = taken.Bytes
	}
	if !b.out.empty() {
		p.wakeWriter()
	}
	return nil
}

// waitsLocked reports whether a message of the stream may be sent now.
func (b *beside) waitsLocked(p *Peer, now time.Time) bool {
	if b.out.empty() {
		return false
	}
	size := int64(len(b.out.msgs[b.out.head].data))
	if size == 0 {
		return true
	}
	return b.sent+size-b.acked <= b.pace.room() && !b.pace.pauses(now, p.wakeWriter)
}

// overtaken counts a message that leaves before one of the stream that could be sent. It
// returns false if too many have.
func (b *beside) overtaken(p *Peer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.empty() || b.overtakenLocked(p, time.Now())
}

func (b *beside) overtakenLocked(p *Peer, now time.Time) bool {
	if !b.waitsLocked(p, now) {
		return true
	}
	b.passed++
	return b.passed <= streamTurn
}

// next returns the stream's next message if it may be sent now. With others, messages
// that are not of the stream wait, and go first unless too many have.
func (b *beside) next(p *Peer, others bool) (m outgoing, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.out.empty() {
		return m, false
	}
	now := time.Now()
	if !b.waitsLocked(p, now) || others && b.overtakenLocked(p, now) {
		return m, false
	}
	b.passed = 0
	m = b.out.pop()
	n := int64(len(m.data))
	b.sent += n
	b.pace.left(n, b.sent, now, p.opts.Typing != nil && p.opts.Typing())
	return m, true
}

// release gives back the memory of a message that was sent.
func (b *beside) release(m outgoing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		b.out.release(m)
	}
	b.room.Broadcast()
}

// fail ends the stream because the peer has ended.
func (b *beside) fail(cause error) {
	why := ErrClosed
	if !errors.Is(cause, ErrClosed) {
		why = fmt.Errorf("%w: %v", ErrClosed, cause) // a clean end, io.EOF, is none for the stream
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = why
	b.pace.stop()
	b.out.drop()
	b.stopLocked(why)
}

type streamAddr struct{}

func (streamAddr) Network() string { return "link" }
func (streamAddr) String() string  { return "link" }

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return streamAddr{} }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return streamAddr{} }

// SetDeadline implements net.Conn. It is not supported.
func (s *stream) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline implements net.Conn. It is not supported.
func (s *stream) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline implements net.Conn. It is not supported.
func (s *stream) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
