package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"tether/jsonrpc"
)

// Requests for lent ports go to a machine as HTTP/2 on the stream of its connection, see
// package ahp. Nothing is started before the first one.

const (
	portStreamBytes  = 1 << 20     // of an answer's body that waits here to be read
	portBodiesBytes  = 4<<20 - 1   // of all bodies from one machine; net/http allows no more
	portHeaderBytes  = 256 << 10   // of one answer
	portHeadersTable = 4 << 10     // of compressed header fields
	portsIdle        = time.Minute // the stream of a machine that is not asked ends after it
	// A body that nobody has read for portStalled may keep portStreamBytes from all the
	// others. Beyond stalledBodies of them, the one that waits longest is ended.
	portStalled   = 10 * time.Second
	stalledBodies = 2
)

var (
	// ErrPortsCut: the connection to the machine ended before the answer did.
	ErrPortsCut = errors.New("the connection to the machine was lost")
	errStalled  = errors.New("nobody has read the answer for a while, and others wait for the machine")
)

// portsLocked returns the way to the machine's lent ports on its present connection. It
// ends with that. The requests have the header fields that package ahp names.
func (cl *client) portsLocked() (http.RoundTripper, error) {
	c := cl.conn
	switch {
	case c == nil || c.closing:
		return nil, ErrPortAway
	case !cl.ports:
		return nil, ErrPortOld
	}
	if c.ports == nil {
		c.ports = &portsWay{peer: c.peer}
	}
	return c.ports, nil
}

// portsWay sends requests for lent ports on one connection of a machine.
type portsWay struct {
	peer *jsonrpc.Peer
	idle *time.Timer // calls rest; set by the first request

	mu     sync.Mutex
	conn   *http.ClientConn       // nil before the first request
	bodies map[*portBody]struct{} // of answers that are being read
	look   *time.Timer            // calls relieve while there are many; nil before
}

// RoundTrip implements http.RoundTripper.
func (w *portsWay) RoundTrip(r *http.Request) (*http.Response, error) {
	conn, err := w.begin(r.Context())
	if err != nil {
		return nil, w.cut(err)
	}
	answer, err := conn.RoundTrip(r)
	if err != nil {
		return nil, w.cut(err)
	}
	b := &portBody{ReadCloser: answer.Body, w: w, since: time.Now()}
	answer.Body = b
	w.add(b)
	return answer, nil
}

// begin returns the HTTP/2 connection on the stream, with a place for one request, if
// there is one. It makes the connection if there is none or it has ended.
func (w *portsWay) begin(ctx context.Context) (*http.ClientConn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil && (w.conn.Reserve() == nil || w.conn.Err() == nil) { // without a place, the request waits for one
		return w.conn, nil
	}
	if w.conn != nil {
		_ = w.conn.Close()
	}
	t := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return w.peer.Stream() },
		DisableCompression: true, MaxResponseHeaderBytes: portHeaderBytes, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: portStreamBytes, MaxReceiveBufferPerConnection: portBodiesBytes, MaxReadFrameSize: 16 << 10,
			MaxDecoderHeaderTableSize: portHeadersTable, MaxEncoderHeaderTableSize: portHeadersTable},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	conn, err := t.NewClientConn(ctx, "http", "machine:80")
	if err != nil {
		return nil, err
	}
	w.conn = conn
	if w.idle == nil {
		w.idle = time.AfterFunc(portsIdle, w.rest)
	}
	idle := w.idle
	conn.SetStateHook(func(*http.ClientConn) { idle.Reset(portsIdle) })
	return conn, conn.Reserve()
}

// rest ends the stream if nothing is asked.
func (w *portsWay) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn.InFlight() == 0 {
		_ = w.conn.Close()
	}
}

// cut returns ErrPortsCut for an error that came from the end of the connection.
func (w *portsWay) cut(err error) error {
	if w.peer.Err() != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", ErrPortsCut, err)
	}
	return err
}

func (w *portsWay) add(b *portBody) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bodies == nil {
		w.bodies = map[*portBody]struct{}{}
	}
	w.bodies[b] = struct{}{}
	w.lookLocked()
}

// lookLocked makes relieve look in a while if there are many bodies.
func (w *portsWay) lookLocked() {
	switch {
	case len(w.bodies) <= stalledBodies:
	case w.look == nil:
		w.look = time.AfterFunc(portStalled/2, w.relieve)
	default:
		w.look.Reset(portStalled / 2)
	}
}

// relieve ends bodies that have not been read for long, if they are too many.
func (w *portsWay) relieve() {
	w.mu.Lock()
	var stalled []*portBody
	for b := range w.bodies {
		if time.Since(b.since) >= portStalled && !b.reading {
			stalled = append(stalled, b)
		}
	}
	slices.SortFunc(stalled, func(a, b *portBody) int { return a.since.Compare(b.since) })
	stalled = stalled[:max(0, len(stalled)-stalledBodies)]
	for _, b := range stalled {
		b.ended = true
		delete(w.bodies, b)
	}
	w.lookLocked()
	w.mu.Unlock()
	for _, b := range stalled {
		_ = b.ReadCloser.Close()
	}
}

// A portBody is the body of an answer that is being read.
type portBody struct {
	io.ReadCloser
	w *portsWay

	// Guarded by w.mu.
	reading bool
	since   time.Time // when it was read last
	ended   bool      // by relieve
}

// Read implements io.Reader.
func (b *portBody) Read(p []byte) (int, error) {
	b.note(true, nil)
	n, err := b.ReadCloser.Read(p)
	switch ended := b.note(false, err); {
	case ended:
		return n, errStalled
	case err == io.EOF, err == nil:
		return n, err
	}
	return n, b.w.cut(err)
}

// note records that a read begins, or has ended with err.
func (b *portBody) note(reading bool, err error) (ended bool) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.reading, b.since = reading, time.Now()
	if err != nil { // it holds nothing any more
		delete(b.w.bodies, b)
	}
	return b.ended
}

// Close implements io.Closer.
func (b *portBody) Close() error {
	b.w.mu.Lock()
	delete(b.w.bodies, b)
	b.w.mu.Unlock()
	return b.ReadCloser.Close()
}
