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

// AttachOptions says where the output of an attachment begins. The zero value means from
// now on.
type AttachOptions struct {
	FromStart bool  // begin with all output that is kept
	Tail      int64 // begin with at most this many of the newest bytes, from the start of a line
	// Screen, with Tail, begins with a clear and the present screen instead if those
	// bytes alone would not show the screen. The same comes after each ControlLagged.
	Screen bool
	From   int64 // if not 0: begin at this raw offset, such as a Message.Raw
	// Script says that no terminal is attached, which would answer. Otherwise Tail's
	// bytes come without what would act on one again, such as questions.
	Script bool
	// Lines says that the input is a script's. A line that the terminal would cut is
	// refused, and with it all input after it.
	Lines bool
}

// Attach attaches to the terminal that ref names. ctx bounds only the opening. The caller
// must Close the attachment.
func (c *Client) Attach(ctx context.Context, ref string, o AttachOptions) (*Attachment, error) {
	q := url.Values{"offsets": {"1"}}
	if o.Lines {
		q.Set("input", "lines")
	}
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
	if o.Script {
		q.Set("terminal", "0")
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

// Attachment is the connection of a person to a terminal. Next is for one goroutine;
// Write and Resize may be called from any.
type Attachment struct {
	conn    *websocket.Conn
	offsets bool // the daemon sends raw offsets
}

// Next waits for the next message. ControlExit and ControlDropped are the last. If the
// connection ends without them, Next returns ErrDropped. When ctx ends, the attachment is
// closed.
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

// data splits a binary message into the raw offset and the output.
func (a *Attachment) data(p []byte) (Message, error) {
	switch {
	case !a.offsets:
		return Message{Data: p}, nil
	case len(p) < localapi.OffsetBytes:
		return Message{}, fmt.Errorf("%w: a message of %d bytes without an offset", ErrDropped, len(p))
	}
	return Message{Data: p[localapi.OffsetBytes:], Raw: int64(binary.BigEndian.Uint64(p) &^ (1 << 63))}, nil
}

// Write sends input. It blocks while the child does not read and much input is in transit
// already.
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

// Resize tells the daemon the size of this person's window.
func (a *Attachment) Resize(ctx context.Context, cols, rows uint16) error {
	return a.conn.Write(ctx, websocket.MessageText, localapi.Control{Type: localapi.ControlResize, Cols: cols, Rows: rows}.Encode())
}

// HangUp tells the terminal's program that its window is gone, as a system does with the
// programs in a window that is closed.
func (a *Attachment) HangUp(ctx context.Context) error {
	return a.conn.Write(ctx, websocket.MessageText, localapi.Control{Type: localapi.ControlHangUp}.Encode())
}

// Close ends the attachment. The terminal runs on.
func (a *Attachment) Close() { a.conn.CloseNow() }
