package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"tether/host/sessions"
)

// A stream between two nodes is a sequence of bytes in messages, by which one node asks
// for what machines at the other one serve. NATS may drop messages: each says where in
// the stream it belongs, and a gap ends the connection. Whoever uses it bounds what is
// under way, and pings: HTTP/2 does both.

const (
	// maxPiece is how many bytes of the stream a message has at most, and maxPieces how
	// many messages wait to be read. More end the connection, which whoever reads it
	// never lets happen.
	maxPiece  = 16<<10 + 64 // a frame of HTTP/2 with its head
	maxPieces = 512
	// maxConns bounds the connections of a node, those that it has opened and others.
	maxConns = 4 * maxNodes
	// pieceHead is the length of what comes before the bytes: the kind and their place.
	pieceHead = 1 + 8
)

// The kinds of messages of a connection.
const (
	pieceOpen  = 'o' // with the id of the node that opens the stream, and back without one
	pieceData  = 'd'
	pieceClose = 'c'
)

var (
	errConnGap  = errors.New("cluster: a part of the connection to another node was lost")
	errConnFull = errors.New("cluster: the connection to another node is not read")
	errConnOver = errors.New("cluster: the connection to another node has ended")
	errConnLate = errors.New("cluster: the other node has not answered")
	errConns    = errors.New("cluster: too many connections between nodes")
)

// conn is one end of a connection between nodes. Its user has the other end of a pipe.
type conn struct {
	n    *Node
	peer string // id of the other node
	id   string // the same at both nodes
	pipe net.Conn
	in   chan []byte // bytes that have arrived; never closed
	over context.Context
	end  context.CancelCauseFunc

	open  chan struct{} // closed when the other node has answered; by the subscription's goroutine
	place uint64        // of the next byte that arrives; owned by the subscription's goroutine
}

// Dial implements host.Nodes.
func (n *Node) Dial(ctx context.Context, node string) (net.Conn, error) {
	if !validID(node) {
		return nil, sessions.ErrNoNode
	}
	c, ours, err := n.newConn(node, strings.ToLower(rand.Text()))
	if err != nil {
		return nil, err
	}
	err = c.publish(pieceOpen, 0, []byte(n.id))
	late := time.NewTimer(askTime)
	defer late.Stop()
	if err == nil {
		select {
		case <-c.open:
			return ours, nil
		case <-c.over.Done():
			err = context.Cause(c.over)
		case <-ctx.Done():
			err = ctx.Err()
		case <-late.C:
			err = errConnLate
		}
	}
	c.end(err)
	return nil, err
}

// opened is called for a stream that another node opens. It answers on the stream, so
// that both know that their messages arrive.
func (n *Node) opened(peer, id string) {
	c, theirs, err := n.newConn(peer, id)
	if err != nil {
		n.log.Warn().Str("peer", peer).Err(err).Msg("a stream of another node is refused")
		return // it waits for no longer than askTime
	}
	close(c.open)
	n.spawn(func() {
		defer theirs.Close()
		if err := c.publish(pieceOpen, 0, nil); err != nil {
			c.end(err)
		}
		n.streams(c.over, theirs)
	})
}

// newConn makes an end of a connection, and returns the end of the pipe for its user.
func (n *Node) newConn(peer, id string) (*conn, net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.conns[id] != nil || len(n.conns) >= maxConns {
		return nil, nil, errConns
	}
	theirs, ours := net.Pipe()
	c := &conn{n: n, peer: peer, id: id, pipe: theirs, in: make(chan []byte, maxPieces), open: make(chan struct{})}
	c.over, c.end = context.WithCancelCause(n.ctx)
	n.conns[id] = c
	n.spawnLocked(c.run)
	return c, ours, nil
}

// run carries the bytes of both directions, until the connection ends.
func (c *conn) run() {
	var sending sync.WaitGroup
	sending.Go(func() { c.end(c.send()) })
	for running := true; running; {
		select {
		case p := <-c.in:
			if p == nil { // the other node has closed it
				c.end(errConnOver)
			} else if _, err := c.pipe.Write(p); err != nil {
				c.end(err)
			}
		case <-c.over.Done():
			running = false
		}
	}
	c.pipe.Close()
	sending.Wait()
	_ = c.publish(pieceClose, 0, nil) // otherwise the other node notices it at its next message
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	delete(c.n.conns, c.id)
}

// send sends what its user writes.
func (c *conn) send() error {
	buf := make([]byte, maxPiece)
	for place := uint64(0); ; {
		size, err := c.pipe.Read(buf)
		if size > 0 {
			if err := c.publish(pieceData, place, buf[:size]); err != nil {
				return err
			}
			place += uint64(size)
		}
		if err != nil {
			return err
		}
	}
}

// publish sends a message. With the subject for answers, NATS says at once when nobody
// gets it, because the other node is gone.
func (c *conn) publish(kind byte, place uint64, p []byte) error {
	data := binary.BigEndian.AppendUint64(append(make([]byte, 0, pieceHead+len(p)), kind), place)
	return c.n.nc.PublishRequest(c.n.connSubject(c.peer, c.id), c.n.connSubject(c.n.id, c.id), append(data, p...))
}

func (n *Node) connSubject(node, id string) string { return n.subject("node." + node + ".conn." + id) }

// arrived takes a message of a connection. It never blocks.
func (n *Node) arrived(m *nats.Msg) {
	id := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	n.mu.Lock()
	c := n.conns[id]
	n.mu.Unlock()
	kind := byte(0)
	if len(m.Data) >= pieceHead {
		kind = m.Data[0]
	}
	switch {
	case c == nil && kind == pieceOpen:
		if peer := string(m.Data[pieceHead:]); validID(peer) && validID(id) {
			n.opened(peer, id)
		}
	case c == nil:
		if kind == pieceData && m.Reply != "" {
			_ = m.Respond([]byte{pieceClose, 0, 0, 0, 0, 0, 0, 0, 0}) // so that it ends there, too
		}
	case kind == pieceOpen:
		select {
		case <-c.open:
		default:
			close(c.open)
		}
	case kind == 0: // nobody was there for the last message
		c.end(sessions.ErrNoNode)
	case kind == pieceClose:
		c.take(nil)
	case kind != pieceData || binary.BigEndian.Uint64(m.Data[1:]) != c.place:
		c.end(errConnGap)
	default:
		p := m.Data[pieceHead:]
		c.place += uint64(len(p))
		c.take(p)
	}
}

// take queues what has arrived.
func (c *conn) take(p []byte) {
	select {
	case c.in <- p:
	default:
		c.end(errConnFull)
	}
}

// endConns ends the connections with a node, or all.
func (n *Node) endConns(peer string, why error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		if peer == "" || c.peer == peer {
			c.end(why)
		}
	}
}
