package jsonrpc

import (
	"context"
	"io"
	"net"
	"sync"
)

// Pipe returns two connected channels: each receives the messages that the other sends.
// They hold one message in flight per direction and allocate nothing once their buffers
// have grown. They are meant for tests, also inside a synctest bubble, and for parts of
// one process.
func Pipe() (Channel, Channel) {
	ab, ba := newStream(), newStream()
	a := &pipeEnd{out: ab, in: ba, done: make(chan struct{})}
	b := &pipeEnd{out: ba, in: ab, done: make(chan struct{})}
	a.other, b.other = b.done, a.done
	return a, b
}

// A stream is one direction of a pipe.
type stream struct {
	full  chan []byte // messages, 1 slot; sent by one end, nobody closes it
	empty chan []byte // buffers to be used again, likewise from the other end; never more than 3 exist
}

func newStream() stream {
	return stream{full: make(chan []byte, 1), empty: make(chan []byte, 3)}
}

// A pipeEnd is one end of a pipe.
type pipeEnd struct {
	out, in stream
	other   chan struct{} // the other end's done

	once sync.Once
	done chan struct{} // closed by Close

	last []byte // owned by the receiver: the last message that Recv returned
}

func (e *pipeEnd) Send(ctx context.Context, msg []byte) error {
	select {
	case <-e.done:
		return net.ErrClosed
	case <-e.other:
		return io.ErrClosedPipe
	default:
	}
	var buf []byte
	select {
	case buf = <-e.out.empty:
	default:
	}
	buf = append(buf[:0], msg...)
	select {
	case e.out.full <- buf:
		return nil
	case <-e.done:
		return net.ErrClosed
	case <-e.other:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *pipeEnd) Recv(ctx context.Context) ([]byte, error) {
	if e.last != nil {
		select {
		case e.in.empty <- e.last:
		default:
		}
		e.last = nil
	}
	select {
	case <-e.done:
		return nil, net.ErrClosed
	case e.last = <-e.in.full:
		return e.last, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.other:
	}
	select {
	case e.last = <-e.in.full: // sent before the other end closed
		return e.last, nil
	default:
		return nil, io.EOF
	}
}

func (e *pipeEnd) Close() error {
	e.once.Do(func() { close(e.done) })
	return nil
}
