package localclient

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coder/websocket"

	"tether/agent/localapi"
)

// AttachOptions says where an attachment begins. The zero value means from now on.
type AttachOptions struct {
	FromStart bool  // with all that is kept
	Tail      int64 // with at most this many bytes before now, from the start of a line
	Screen    bool  // with Tail: if those bytes alone would not show it, the present screen instead of them, after a clear; and again after each ControlLagged
	From      int64 // if not 0: from this raw offset on, such as Message.Raw
}

// Attach opens the terminal that ref names. ctx bounds only the opening. The caller must Close it.
func (c *Client) Attach(ctx context.Context, ref string, o AttachOptions) (*Attachment, error) {
	q := url.Values{"offsets": {"1"}}
	switch {
	case o.From > 0:
		q.Set("from", strconv.FormatInt(o.From, 10))
	case o.FromStart:
		q.Set("from", "0")
	case o.Tail > 0:
		q.Set("tail", strconv.FormatInt(o.Tail, 10))
		if o.Screen {
			q.Set("screen", "1")
		}
	}
	conn, resp, err := websocket.Dial(ctx, "ws://"+localapi.Host+terminalPath(ref, "/attach")+"?"+q.Encode(),
		&websocket.DialOptions{HTTPClient: &c.http, HTTPHeader: c.header})
	switch {
	case err == nil:
		conn.SetReadLimit(localapi.MaxFrame)
		return &Attachment{conn, resp.Header.Get(localapi.OffsetsHeader) == "1"}, nil
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, errorIn(resp)
	}
	return nil, plain(err)
}

// Attachment is a terminal at the hands of its person. Next is for one goroutine; Write and Resize may be called from any.
type Attachment struct {
	conn    *websocket.Conn
	offsets bool // the daemon says them
}

// Next waits for the next message. After a ControlExit or ControlDropped there is none. A connection that ends without them gives
// ErrDropped. When ctx ends the attachment is closed.
func (a *Attachment) Next(ctx context.Context) (Message, error) {
	kind, data, err := a.conn.Read(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return Message{}, ctx.Err()
		}
		return Message{}, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	if kind == websocket.MessageBinary {
		return a.data(data)
	}
	c, err := localapi.ParseControl(data)
	if err != nil {
		return Message{}, err
	}
	return Message{Control: &c}, nil
}

// SaysOffsets reports whether messages have a raw offset.
func (a *Attachment) SaysOffsets() bool { return a.offsets }

// data takes a binary message apart.
func (a *Attachment) data(p []byte) (Message, error) {
	switch {
	case !a.offsets:
		return Message{Data: p}, nil
	case len(p) < localapi.OffsetBytes:
		return Message{}, fmt.Errorf("%w: a message of %d bytes without an offset", ErrDropped, len(p))
	}
	return Message{Data: p[localapi.OffsetBytes:], Raw: int64(binary.BigEndian.Uint64(p) &^ (1 << 63))}, nil
}

// Write sends input. It waits while the child does not read and much is in transit already.
func (a *Attachment) Write(ctx context.Context, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), localapi.AttachChunk)
		if err := a.conn.Write(ctx, websocket.MessageBinary, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// Resize gives the terminal a size.
func (a *Attachment) Resize(ctx context.Context, cols, rows uint16) error {
	return a.conn.Write(ctx, websocket.MessageText, localapi.Control{Type: localapi.ControlResize, Cols: cols, Rows: rows}.Encode())
}

// Close leaves the terminal, which goes on.
func (a *Attachment) Close() { a.conn.CloseNow() }

// Message is a message of the terminal: Data, or a Control.
type Message struct {
	Data    []byte // valid until the next call
	Raw     int64  // raw offset after Data; 0 where the daemon does not say
	Control *localapi.Control
}
