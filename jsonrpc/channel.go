package jsonrpc

import "context"

// A Channel carries whole messages, in order and without loss, between two peers. One
// goroutine may send while another receives; neither method is called by two goroutines
// at once. A channel may end when the context of a blocked call is cancelled (package
// wsconn does); the [Peer] never cancels one and uses Close instead.
type Channel interface {
	// Send hands over one message. It may block while the other side does not read. msg
	// is not kept after Send returned.
	Send(ctx context.Context, msg []byte) error

	// Recv returns the next message, valid until the next Recv. The error satisfies
	// errors.Is(err, io.EOF) after a clean close by the other side and errors.Is(err,
	// net.ErrClosed) after Close.
	Recv(ctx context.Context) ([]byte, error)

	// Close ends the channel without delay and unblocks Send and Recv. It may be called
	// by any goroutine and more than once.
	Close() error
}

// A ReasonCloser is a [Channel] that can tell the other side why it closes. CloseReason
// does the same as Close, but may take a few seconds; it may be called while others wait
// in Send and Recv.
type ReasonCloser interface {
	CloseReason(code int, reason string) error
}

// A BatchSender is a [Channel] that can gather messages and write them together. Its
// methods are called as Send is.
type BatchSender interface {
	// SendMore is Send that may keep a copy of the message back until the next Send or
	// Flush, which follows at once.
	SendMore(ctx context.Context, msg []byte) error

	// Flush sends the messages that SendMore has kept back.
	Flush(ctx context.Context) error
}
