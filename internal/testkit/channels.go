package testkit

import (
	"context"
	"io"
	"net"
	"sync"
)

// Channels returns two connected channels of JSON-RPC: each receives the messages that
// the other sends. They hold one message in flight per direction and allocate nothing
// once their buffers have grown. They may be used inside a synctest bubble.
func Channels() (*ChannelEnd, *ChannelEnd) {
	ab, ba := newOneWay(), newOneWay()
	a := &ChannelEnd{out: ab, in: ba, done: make(chan struct{})}
	b := &ChannelEnd{out: ba, in: ab, done: make(chan struct{})}
	a.other, b.other = b.done, a.done
	return a, b
}

// A oneWay is one direction of two channels.
type oneWay struct {
	full  chan message // 1 slot; sent by one end, nobody closes it
	empty chan []byte  // buffers to be used again, likewise from the other end; never more than 3 exist
}

type message struct {
	data   []byte
	binary bool
}

func newOneWay() oneWay {
	return oneWay{full: make(chan message, 1), empty: make(chan []byte, 3)}
}

// A ChannelEnd is one of the two channels that Channels returns.
type ChannelEnd struct {
	out, in oneWay
	other   chan struct{} // the other end's done

	once sync.Once
	done chan struct{} // closed by Close

	last message // owned by the receiver: the last one that Recv returned
}

// Send implements jsonrpc.Channel.
func (e *ChannelEnd) Send(ctx context.Context, msg []byte) error { return e.send(ctx, msg, false) }

// SendBinary implements jsonrpc.BinaryChannel.
func (e *ChannelEnd) SendBinary(ctx context.Context, msg []byte) error { return e.send(ctx, msg, true) }

// Binary implements jsonrpc.BinaryChannel.
func (e *ChannelEnd) Binary() bool { return e.last.binary }

func (e *ChannelEnd) send(ctx context.Context, msg []byte, binary bool) error {
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
	case e.out.full <- message{buf, binary}:
		return nil
	case <-e.done:
		return net.ErrClosed
	case <-e.other:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Recv implements jsonrpc.Channel.
func (e *ChannelEnd) Recv(ctx context.Context) ([]byte, error) {
	if e.last.data != nil {
		select {
		case e.in.empty <- e.last.data:
		default:
		}
		e.last = message{}
	}
	select {
	case <-e.done:
		return nil, net.ErrClosed
	case e.last = <-e.in.full:
		return e.last.data, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.other:
	}
	select {
	case e.last = <-e.in.full: // sent before the other end closed
		return e.last.data, nil
	default:
		return nil, io.EOF
	}
}

// Close implements jsonrpc.Channel.
func (e *ChannelEnd) Close() error {
	e.once.Do(func() { close(e.done) })
	return nil
}
