package ports

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

const (
	answerBytes  = 1 << 20     // of an answer's body that waits here to be read
	answersBytes = 4<<20 - 1   // of all bodies from one machine; net/http allows no more
	headerBytes  = 256 << 10   // of one answer
	headersTable = 4 << 10     // of compressed header fields
	idleTime     = time.Minute // the stream of a machine that is not asked ends after it
	// A body that nobody has read for stalledTime may keep answerBytes from all the
	// others. Beyond stalledBodies of them, the one that waits longest is ended.
	stalledTime   = 10 * time.Second
	stalledBodies = 2
)

var (
	// ErrCut: the connection to the machine ended before the answer did.
	ErrCut     = errors.New("the connection to the machine was lost")
	errStalled = errors.New("nobody has read the answer for a while, and others wait for the machine")
)

// Machine sends requests for lent ports on one connection of a machine: as HTTP/2 on the
// connection's stream, with the header fields that package ahp names. It starts nothing
// before the first one, and ends with the connection. It is safe for concurrent use.
type Machine struct {
	peer *jsonrpc.Peer
	idle *time.Timer // calls rest; set by the first request

	mu     sync.Mutex
	conn   *http.ClientConn   // nil before the first request
	bodies map[*body]struct{} // of answers that are being read
	look   *time.Timer        // calls relieve while there are many; nil before
}

// NewMachine returns the way to the machine at the other side of a connection.
func NewMachine(peer *jsonrpc.Peer) *Machine { return &Machine{peer: peer} }

// RoundTrip implements http.RoundTripper. The caller must close the answer's body.
func (m *Machine) RoundTrip(r *http.Request) (*http.Response, error) {
	conn, err := m.begin(r.Context())
	if err != nil {
		return nil, m.cut(err)
	}
	answer, err := conn.RoundTrip(r)
	if err != nil {
		return nil, m.cut(err)
	}
	b := &body{ReadCloser: answer.Body, m: m, since: time.Now()}
	answer.Body = b
	m.add(b)
	return answer, nil
}

// begin returns the HTTP/2 connection on the stream, with a place for one request, if
// there is one. It makes the connection if there is none or it has ended.
func (m *Machine) begin(ctx context.Context) (*http.ClientConn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil && (m.conn.Reserve() == nil || m.conn.Err() == nil) { // without a place, the request waits for one
		return m.conn, nil
	}
	if m.conn != nil {
		_ = m.conn.Close()
	}
	t := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return m.peer.Stream() },
		DisableCompression: true, MaxResponseHeaderBytes: headerBytes, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: answerBytes, MaxReceiveBufferPerConnection: answersBytes, MaxReadFrameSize: 16 << 10,
			MaxDecoderHeaderTableSize: headersTable, MaxEncoderHeaderTableSize: headersTable},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	conn, err := t.NewClientConn(ctx, "http", "machine:80")
	if err != nil {
		return nil, err
	}
	m.conn = conn
	if m.idle == nil {
		m.idle = time.AfterFunc(idleTime, m.rest)
	}
	idle := m.idle
	conn.SetStateHook(func(*http.ClientConn) { idle.Reset(idleTime) })
	return conn, conn.Reserve()
}

// rest ends the stream if nothing is asked.
func (m *Machine) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn.InFlight() == 0 {
		_ = m.conn.Close()
	}
}

// cut returns ErrCut for an error that came from the end of the connection.
func (m *Machine) cut(err error) error {
	if m.peer.Err() != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", ErrCut, err)
	}
	return err
}

func (m *Machine) add(b *body) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bodies == nil {
		m.bodies = map[*body]struct{}{}
	}
	m.bodies[b] = struct{}{}
	m.lookLocked()
}

// lookLocked makes relieve look in a while if there are many bodies.
func (m *Machine) lookLocked() {
	switch {
	case len(m.bodies) <= stalledBodies:
	case m.look == nil:
		m.look = time.AfterFunc(stalledTime/2, m.relieve)
	default:
		m.look.Reset(stalledTime / 2)
	}
}

// relieve ends bodies that have not been read for long, if they are too many.
func (m *Machine) relieve() {
	m.mu.Lock()
	var stalled []*body
	for b := range m.bodies {
		if time.Since(b.since) >= stalledTime && !b.reading {
			stalled = append(stalled, b)
		}
	}
	slices.SortFunc(stalled, func(a, b *body) int { return a.since.Compare(b.since) })
	stalled = stalled[:max(0, len(stalled)-stalledBodies)]
	for _, b := range stalled {
		b.ended = true
		delete(m.bodies, b)
	}
	m.lookLocked()
	m.mu.Unlock()
	for _, b := range stalled {
		_ = b.ReadCloser.Close()
	}
}

// A body is that of an answer that is being read.
type body struct {
	io.ReadCloser
	m *Machine

	// Guarded by m.mu.
	reading bool
	since   time.Time // when it was read last
	ended   bool      // by relieve
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.note(true, nil)
	n, err := b.ReadCloser.Read(p)
	switch ended := b.note(false, err); {
	case ended:
		return n, errStalled
	case err == io.EOF, err == nil:
		return n, err
	}
	return n, b.m.cut(err)
}

// note records that a read begins, or has ended with err.
func (b *body) note(reading bool, err error) (ended bool) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	b.reading, b.since = reading, time.Now()
	if err != nil { // it holds nothing any more
		delete(b.m.bodies, b)
	}
	return b.ended
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.m.mu.Lock()
	delete(b.m.bodies, b)
	b.m.mu.Unlock()
	return b.ReadCloser.Close()
}
