package wsconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

const (
	defaultReadLimit    = 1 << 20          // bytes, see Options.ReadLimit
	defaultWriteTimeout = 10 * time.Second // see Options.WriteTimeout

	// closeTimeout is how long CloseReason waits for the other side's close frame. RFC
	// 6455 leaves it open; the library alone would wait 10 s.
	closeTimeout = 2 * time.Second

	// firstBuffer is the size in bytes of a new receive buffer, enough for a message of
	// about one frame of output.
	firstBuffer = 16 << 10
)

// MediumBuffer is the size in bytes of the buffer of a message that is longer than 16
// KiB, and the largest that is used again. Longer ones have up to the read limit.
const MediumBuffer = 128 << 10

// Options are the settings of a [Conn]. Zero values mean the defaults.
type Options struct {
	// ReadLimit bounds a received message in bytes, after decompression. Beyond it the
	// connection is closed with 1009. Default 1 MiB.
	ReadLimit int64

	// Memory, if not nil, is asked before a receive buffer becomes larger than 16 KiB. It
	// is for this connection alone.
	Memory Memory

	// WriteTimeout bounds each write to the socket, of at most 64 KiB: a connection that
	// does not take it in time is closed. Default 10 s.
	WriteTimeout time.Duration

	// Compress offers or accepts permessage-deflate without context takeover. It costs
	// CPU and pays on thin links only.
	Compress bool

	// HTTPHeader is added to the request of Dial.
	HTTPHeader http.Header

	// DialContext replaces the dialer of Dial, for unix sockets and tests; then no proxy
	// is used either. By default the proxy named by the environment is, except for local
	// addresses.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)

	// TLSConfig is used by Dial for wss, nil means Go's defaults. It is not changed.
	TLSConfig *tls.Config

	// OriginChecked tells Accept that the caller has decided about the Origin header.
	// Otherwise a request with an Origin other than its own Host is refused with 403;
	// that check alone does not protect a local server, since it believes the Host
	// header.
	OriginChecked bool
}

// A Memory bounds the receive buffers of several connections together. Its methods are
// called by the receiving goroutine.
type Memory interface {
	// Reserve waits until the connection may hold n more bytes: MediumBuffer, and later
	// about the read limit for a message that is longer still. It returns when ctx ends,
	// which the connection's end does; an error ends the connection.
	Reserve(ctx context.Context, n int) error
	// Arrived says that the message for which bytes were reserved is there.
	Arrived()
	// Release gives back all that was reserved, if anything was. After the last Recv, the
	// caller does that.
	Release()
}

func (o Options) withDefaults() Options {
	if o.ReadLimit <= 0 {
		o.ReadLimit = defaultReadLimit
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = defaultWriteTimeout
	}
	return o
}

func (o Options) compression() websocket.CompressionMode {
	if o.Compress {
		return websocket.CompressionNoContextTakeover
	}
	return websocket.CompressionDisabled
}

// A Conn is one WebSocket connection, a jsonrpc.Channel. One goroutine may send while
// another receives; any goroutine may call Ping, Close and CloseReason. It starts no
// goroutine of its own.
type Conn struct {
	ws    *websocket.Conn
	link  *link
	limit int64
	mem   Memory         // nil if there is no bound
	skew  *time.Duration // nil if the server did not send its time

	open   context.Context // ends with the connection
	ended  func()          // ends it
	closed atomic.Bool     // by this side; decides what Recv reports
	buf    *[]byte         // owned by the receiver: the last message that Recv returned
	binary bool            // owned by the receiver: the last message that Recv returned was binary
	longer bool            // owned by the receiver: the last message was longer than firstBuffer, and in a flood the next one will be too
}

// buffers and mediumBuffers are receive buffers, so that a connection on which nothing
// arrives holds none.
var (
	buffers       = bufferPool(firstBuffer)
	mediumBuffers = bufferPool(MediumBuffer)
)

func bufferPool(size int) *sync.Pool {
	return &sync.Pool{New: func() any {
		b := make([]byte, 0, size)
		return &b
	}}
}

func newConn(ws *websocket.Conn, l *link, o Options) *Conn {
	ws.SetReadLimit(o.ReadLimit)
	c := &Conn{ws: ws, link: l, limit: o.ReadLimit, mem: o.Memory}
	c.open, c.ended = context.WithCancel(context.Background())
	return c
}

// ClockSkew returns how far the server's clock was ahead of this machine's when the
// connection was dialed, to about a second and the time of the answer, from the Date of
// its response (RFC 9110, 6.6.1). It is false if there was none.
func (c *Conn) ClockSkew() (time.Duration, bool) {
	if c.skew == nil {
		return 0, false
	}
	return *c.skew, true
}

// Socket is the connection below the WebSocket. It must be neither read nor written.
func (c *Conn) Socket() net.Conn { return c.link.Conn }

// Written returns how many bytes the socket has taken since the handshake.
func (c *Conn) Written() int64 { return c.link.written.Load() }

// Send writes msg as one text frame. It blocks while the socket is full, until it has
// taken nothing for the write time-out or ctx is done; both close the connection.
func (c *Conn) Send(ctx context.Context, msg []byte) error {
	if err := c.SendMore(ctx, msg); err != nil {
		return err
	}
	return c.Flush(ctx)
}

// SendMore is [Conn.Send] that may keep its copy of the frame back until the Send or
// Flush that must follow at once, so that both leave in one write.
func (c *Conn) SendMore(ctx context.Context, msg []byte) error {
	return c.sendMore(ctx, websocket.MessageText, msg)
}

func (c *Conn) sendMore(ctx context.Context, kind websocket.MessageType, msg []byte) error {
	return c.write(ctx, func() error {
		c.link.hold()
		// Not with ctx: it would only cover the copy into the link.
		return c.ws.Write(context.Background(), kind, msg)
	})
}

// SendBinary is [Conn.Send] for a binary frame.
func (c *Conn) SendBinary(ctx context.Context, msg []byte) error {
	if err := c.sendMore(ctx, websocket.MessageBinary, msg); err != nil {
		return err
	}
	return c.Flush(ctx)
}

// Binary reports whether the last message of Recv came in a binary frame. Only the
// receiving goroutine may call it.
func (c *Conn) Binary() bool { return c.binary }

// Flush writes the messages that [Conn.SendMore] has kept back.
func (c *Conn) Flush(ctx context.Context) error {
	return c.write(ctx, c.link.release)
}

// write calls f, which writes, and closes the connection if that fails or if ctx is done
// before.
func (c *Conn) write(ctx context.Context, f func() error) error {
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, c.abort)()
	}
	err := f()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	c.abort()
	return fmt.Errorf("wsconn: send: %w", err)
}

// Recv returns the next message, valid until the next Recv; [Conn.Binary] tells its kind.
// It blocks until there is one, until the connection ends or until ctx is
// done, which closes the connection.
//
// It returns a [*CloseError] when the other side closed or vanished, an error for which
// errors.Is(err, net.ErrClosed) after Close, and a plain error for a message beyond the
// read limit, after closing with 1009.
func (c *Conn) Recv(ctx context.Context) ([]byte, error) {
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, c.abort)()
	}
	c.Free()
	kind, r, err := c.ws.Reader(context.Background()) // blocks until a frame begins
	if err == nil {
		c.binary = kind == websocket.MessageBinary
		if err = c.readAll(r); err == nil {
			if c.mem != nil && cap(*c.buf) > firstBuffer {
				c.mem.Arrived()
			}
			c.longer = len(*c.buf) > firstBuffer
			return *c.buf, nil
		}
		c.Free()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, c.recvError(err)
}

// Free gives back the buffer of the message that Recv returned last, as the next Recv
// does. Call it when the next Recv may be a long time off. Only the receiving goroutine
// may call it.
func (c *Conn) Free() {
	if c.buf == nil {
		return
	}
	recycle(c.buf)
	c.buf = nil
	if c.mem != nil {
		c.mem.Release()
	}
}

func recycle(buf *[]byte) {
	*buf = (*buf)[:0]
	switch cap(*buf) {
	case firstBuffer:
		buffers.Put(buf)
	case MediumBuffer:
		mediumBuffers.Put(buf)
	}
}

// readAll reads all of r to a receive buffer.
func (c *Conn) readAll(r io.Reader) error {
	c.buf = buffers.Get().(*[]byte)
	if c.longer {
		if err := c.grow(); err != nil {
			return err
		}
	}
	for {
		if len(*c.buf) == cap(*c.buf) {
			if err := c.grow(); err != nil {
				return err
			}
		}
		buf := *c.buf
		n, err := r.Read(buf[len(buf):cap(buf)])
		*c.buf = buf[:len(buf)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// grow makes the receive buffer larger, once the memory bound allows it.
func (c *Conn) grow() error {
	old := *c.buf
	if c.mem != nil && cap(old) <= MediumBuffer {
		n := MediumBuffer
		if cap(old) == MediumBuffer {
			n = c.longest()
		}
		if err := c.mem.Reserve(c.open, n); err != nil {
			return err
		}
	}
	var grown *[]byte
	if cap(old) < MediumBuffer {
		grown = mediumBuffers.Get().(*[]byte)
	} else {
		long := make([]byte, 0, min(2*cap(old), c.longest()))
		grown = &long
	}
	*grown = append(*grown, old...)
	recycle(c.buf)
	c.buf = grown
	return nil
}

// longest is the size of the buffer for the longest message, whose end is seen where one
// byte more could come.
func (c *Conn) longest() int { return max(int(c.limit)+1, 2*MediumBuffer) }

// recvError maps the library's error to the one that Recv promises.
func (c *Conn) recvError(err error) error {
	if c.closed.Load() {
		return net.ErrClosed
	}
	if errors.Is(err, websocket.ErrMessageTooBig) {
		// The library has sent its close frame. Wait for the answer: with the rest of the
		// message unread, closing at once would reset the connection and the other side
		// might never see the code.
		_ = c.CloseReason(CloseTooBig, "")
		return fmt.Errorf("wsconn: received a message of more than %d bytes", c.limit)
	}
	if ce, ok := errors.AsType[websocket.CloseError](err); ok {
		return &CloseError{Code: int(ce.Code), Reason: ce.Reason}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // not clean: there was no close frame
	}
	return &CloseError{Code: CloseAbnormal, err: err}
}

// Ping sends a ping and waits for its pong. Somebody must be in Recv meanwhile, because
// that is where the pong arrives. If it fails, also because ctx is done, the connection
// should be closed.
func (c *Conn) Ping(ctx context.Context) error {
	if err := c.ws.Ping(ctx); err != nil {
		if c.closed.Load() {
			return net.ErrClosed
		}
		return fmt.Errorf("wsconn: ping: %w", err)
	}
	return nil
}

// Close ends the connection without a close frame and without delay. The other side sees
// [CloseAbnormal]; use [Conn.CloseReason] to part on good terms.
func (c *Conn) Close() error {
	c.closed.Store(true)
	c.abort()
	return nil
}

// abort ends everything that is under way.
func (c *Conn) abort() {
	c.ended()
	_ = c.link.Conn.Close() // first: the calls below wait for writers
	_ = c.ws.CloseNow()
}

// CloseReason sends a close frame, waits up to 2 s for the other side's and ends the
// connection. Messages sent before it are delivered before it. code is one of
// [CloseNormal] and so on, or from 3000 to 4999; at most 123 bytes of reason are sent. A
// second call, or a call after Close, does the same as Close.
func (c *Conn) CloseReason(code int, reason string) error {
	if c.closed.Swap(true) {
		c.abort()
		return nil
	}
	defer c.abort()
	timer := time.AfterFunc(closeTimeout, c.abort)
	defer timer.Stop()
	if err := c.link.flushForGood(); err != nil {
		return fmt.Errorf("wsconn: close: %w", err)
	}
	if err := c.ws.Close(websocket.StatusCode(code), closeReason(reason)); err != nil {
		return fmt.Errorf("wsconn: close: %w", err)
	}
	return nil
}
