package localclient

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"

	"github.com/coder/websocket"

	"tether/agent/localapi"
)

// Feed opens the standard input of the command in the terminal that ref names, which was
// started with SpawnRequest.Feed. ctx bounds only the opening. The caller must Close the
// Feeder.
func (c *Client) Feed(ctx context.Context, ref string) (*Feeder, error) {
	conn, resp, err := websocket.Dial(ctx, "ws://"+localapi.Host+terminalPath(ref, "/input"), &websocket.DialOptions{HTTPClient: &c.http, HTTPHeader: c.header})
	switch {
	case err == nil:
		conn.SetReadLimit(localapi.MaxFrame)
		return &Feeder{conn: conn}, nil
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, errorIn(resp)
	}
	return nil, plain(err)
}

// Feeder writes a command's standard input. One goroutine may call Next and another one
// Write. If the connection ends, the input ends, unless the daemon has ended: then it
// continues with the next Feed, if that comes in time.
type Feeder struct {
	conn *websocket.Conn
	buf  []byte
}

// Next waits until the daemon tells how far the command's input goes: once at the
// beginning, and after each piece. closed says that the input has ended, or that the
// command reads no more; nothing follows. Errors: ErrDropped, or a *localapi.Error if the
// daemon refuses the input.
func (f *Feeder) Next(ctx context.Context) (offset int64, closed bool, err error) {
	for {
		_, data, err := f.conn.Read(ctx)
		if err != nil {
			return 0, false, fmt.Errorf("%w: %w", ErrDropped, err)
		}
		c, err := localapi.ParseControl(data)
		switch {
		case err != nil:
			return 0, false, err
		case c.Error != nil:
			return 0, false, c.Error
		case c.Type == localapi.ControlFed:
			return c.Offset, c.Closed, nil
		}
	}
}

// Write sends a piece, at most localapi.FeedChunk bytes, that begins at offset off of the
// input. Without bytes, the input ends there.
func (f *Feeder) Write(ctx context.Context, off int64, p []byte) error {
	f.buf = append(binary.BigEndian.AppendUint64(f.buf[:0], uint64(off)), p...)
	return f.conn.Write(ctx, websocket.MessageBinary, f.buf)
}

// Close ends the connection.
func (f *Feeder) Close() { f.conn.CloseNow() }
