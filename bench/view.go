package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"

	"tether/agent/localapi"
	"tether/jsonrpc/wsconn"
	"tether/platform/ipc"
)

// shown counts the output that the viewers of one process have received.
type shown struct {
	Bytes    int64 `json:"bytes"`    // of JSON
	Attached int64 `json:"attached"` // how often a viewer got the newest history
}

// dialUI connects to the daemon as a user interface.
func dialUI(ctx context.Context, socket string) (*wsconn.Conn, error) {
	return wsconn.Dial(ctx, "ws://"+localapi.Host+"/pty", wsconn.Options{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return ipc.Dial(ctx, socket) },
	})
}

// view attaches several viewers to a terminal: args are a socket, a terminal's id, the
// number of viewers, and whether they stall. It prints the counts when all viewers have
// received something, and again for each line of in, and returns at the end of in.
// Stalled viewers stop reading after the first message of the terminal.
func view(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 4 {
		return fmt.Errorf("child view: want a socket, an id, a number and whether they stall, got %q", args)
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("child view: %w", err)
	}
	v := &viewing{first: make(chan error, n), stalled: args[3] == "true"}
	ctx := context.Background()
	for range n {
		conn, err := dialUI(ctx, args[0])
		if err == nil {
			err = conn.Send(ctx, fmt.Appendf(nil, `{"type":"pty:attach","id":%q}`, args[1]))
		}
		if err != nil {
			return err
		}
		go v.follow(ctx, conn)
	}
	for range n {
		if err := <-v.first; err != nil {
			return err
		}
	}
	enc, lines := json.NewEncoder(out), bufio.NewScanner(in)
	for more := true; more; more = lines.Scan() {
		if err := enc.Encode(shown{v.bytes.Load(), v.attached.Load()}); err != nil {
			return err
		}
	}
	return nil
}

// viewing is the state that the viewers of one process share.
type viewing struct {
	stalled bool
	first   chan error // one value from each viewer: nil at its first message of the terminal, or why there is none

	bytes, attached atomic.Int64
}

var (
	attachedHead = []byte(`{"type":"pty:attached"`)
	eventHead    = []byte(`{"type":"terminal"`) // of the list of terminals
)

// follow is one viewer.
func (v *viewing) follow(ctx context.Context, conn *wsconn.Conn) {
	for began := false; ; {
		msg, err := conn.Recv(ctx)
		if err != nil {
			if !began {
				v.first <- err
			}
			return
		}
		v.bytes.Add(int64(len(msg)))
		if bytes.HasPrefix(msg, attachedHead) {
			v.attached.Add(1)
		}
		if !began && !bytes.HasPrefix(msg, eventHead) {
			began = true
			v.first <- nil
			if v.stalled {
				return
			}
		}
	}
}
