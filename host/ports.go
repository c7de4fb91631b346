package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"tether/jsonrpc"
)

// Requests for lent ports go to a machine as HTTP/2 on the stream of its connection, see
// package ahp. Nothing is started before the first one.

const (
	portStreamBytes  = 1 << 20   // of an answer's body that waits here to be read
	portBodiesBytes  = 4<<20 - 1 // of all bodies from one machine
	portHeaderBytes  = 256 << 10 // of one answer
	portHeadersTable = 4 << 10   // of compressed header fields
)

var (
	// errNoPorts: the machine's marker does not have ports.
	errNoPorts = errors.New("the machine's tether does not lend ports: it is too old")
	// ErrPortsCut: the connection to the machine ended before the answer did.
	ErrPortsCut = errors.New("the connection to the machine was lost")
)

// portsLocked returns the way to the machine's lent ports on its present connection. It
// ends with that. The requests have the header fields that package ahp names.
func (cl *client) portsLocked() (http.RoundTripper, error) {
	c := cl.conn
	switch {
	case c == nil || c.closing:
		return nil, awayError(cl.machineLocked())
	case !cl.ports:
		return nil, errNoPorts
	}
	if c.ports == nil {
		c.ports = &portsWay{peer: c.peer}
	}
	return c.ports, nil
}

// portsWay sends requests for lent ports on one connection of a machine.
type portsWay struct {
	peer *jsonrpc.Peer

	mu   sync.Mutex
	conn *http.ClientConn // nil before the first request
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
	return answer, nil
}

// begin returns the HTTP/2 connection on the stream, and makes it if there is none or it
// has ended.
func (w *portsWay) begin(ctx context.Context) (*http.ClientConn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil && w.conn.Err() == nil {
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
	if err == nil {
		w.conn = conn
	}
	return conn, err
}

// cut returns ErrPortsCut for an error that came from the end of the connection.
func (w *portsWay) cut(err error) error {
	if w.peer.Err() != nil {
		return fmt.Errorf("%w: %w", ErrPortsCut, err)
	}
	return err
}
