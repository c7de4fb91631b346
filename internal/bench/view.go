package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	"tether/agent/localapi"
	"tether/platform/ipc"
)

// shown counts the output that the viewers of one process have received.
type shown struct {
	Bytes    int64 `json:"bytes"` // of JSON
	Messages int64 `json:"messages"`
	Attached int64 `json:"attached"` // how often a viewer got the newest history
}

// view attaches several viewers to a terminal: args are a socket, a terminal's id, the number of viewers, and whether they stall. It prints the
// counts when all viewers have received something, and again for each line of in, and returns at the end of in. Stalled viewers stop
// reading after the first message of the terminal.
func view(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 4 {
		return fmt.Errorf("child view: want a socket, an id, a number and whether they stall, got %q", args)
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("child view: %w", err)
	}
	v := &viewing{first: make(chan error, n), stalled: args[3] == "true"}
	for range n {
		conn, err := ipc.Dial(context.Background(), args[0])
		if err != nil {
			return err
		}
		defer conn.Close()
		go v.follow(conn, args[1])
	}
	for range n {
		if err := <-v.first; err != nil {
			return err
		}
	}
	enc, lines := json.NewEncoder(out), bufio.NewScanner(in)
	for more := true; more; more = lines.Scan() {
		s := shown{v.bytes.Load(), v.messages.Load(), v.attached.Load()}
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	return nil
}

// viewing is the state that the viewers of one process share.
type viewing struct {
	stalled bool
	first   chan error // one value from each viewer: nil at its first message of the terminal, or why there is none

	bytes, messages, attached atomic.Int64
}

// follow is one viewer. It parses WebSocket frames by hand, since the daemon is the subject of the measurement.
func (v *viewing) follow(conn net.Conn, id string) {
	in, err := open(conn, id)
	began := false
	for err == nil {
		var event bool
		if event, err = v.frame(in); err == nil && !event && !began {
			began = true
			v.first <- nil
			if v.stalled {
				return
			}
		}
	}
	if !began {
		v.first <- err
	}
}

// upgrade turns a connection to the daemon into the WebSocket of a user interface.
func upgrade(conn net.Conn) (*bufio.Reader, error) {
	const hello = "GET /pty HTTP/1.1\r\nHost: " + localapi.Host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
	if _, err := io.WriteString(conn, hello); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 32<<10)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, errors.New("the daemon answered " + resp.Status)
	}
	return in, nil
}

// shortText returns a text frame with a message of at most 125 bytes, masked with zeros; RFC 6455, 5.2.
func shortText(message string) []byte {
	return append([]byte{0x81, 0x80 | byte(len(message)), 0, 0, 0, 0}, message...)
}

// open upgrades the connection and attaches to a terminal.
func open(conn net.Conn, id string) (*bufio.Reader, error) {
	in, err := upgrade(conn)
	if err != nil {
		return nil, err
	}
	message := fmt.Sprintf(`{"type":"pty:attach","id":%q}`, id)
	_, err = conn.Write(shortText(message))
	return in, err
}

var (
	attachedHead = []byte(`{"type":"pty:attached"`)
	eventHead    = []byte(`{"type":"terminal"`)
)

// frame reads one frame and counts it. event reports that it is an event of the list of terminals, not output of one.
func (v *viewing) frame(in *bufio.Reader) (event bool, err error) {
	var head [8]byte
	if _, err := io.ReadFull(in, head[:2]); err != nil {
		return false, err
	}
	n := int64(head[1] & 0x7f)
	switch n {
	case 126:
		_, err = io.ReadFull(in, head[:2])
		n = int64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(in, head[:8])
		n = int64(binary.BigEndian.Uint64(head[:8]))
	}
	if err != nil {
		return false, err
	}
	begin, err := in.Peek(int(min(n, int64(len(attachedHead)))))
	if err != nil {
		return false, err
	}
	if bytes.Equal(begin, attachedHead) {
		v.attached.Add(1)
	}
	event = bytes.HasPrefix(begin, eventHead)
	_, err = io.CopyN(io.Discard, in, n)
	v.bytes.Add(n)
	v.messages.Add(1)
	return event, err
}
