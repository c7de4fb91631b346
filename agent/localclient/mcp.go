package localclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"tether/agent/localapi"
	"tether/platform/ipc"
)

// MCP opens an MCP session, in which each line is one JSON-RPC message. It acts as the
// client's principal, or as DefaultAgent if the client has none. ctx bounds only the
// opening. The caller must Close the session; CloseWrite tells the server that no more
// messages follow.
func (c *Client) MCP(ctx context.Context) (*MCPStream, error) {
	conn, err := ipc.Dial(ctx, c.socket)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	stream, err := c.upgrade(conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return stream, nil
}

func (c *Client) upgrade(conn net.Conn) (*MCPStream, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+localapi.Host+"/v1/mcp", nil)
	if err != nil {
		return nil, err
	}
	req.Header = c.header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", localapi.MCPProtocol)
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, fmt.Errorf("the daemon's answer: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return nil, errorIn(resp)
	}
	return &MCPStream{conn: conn, in: in}, nil
}

// MCPStream is an MCP session whose messages are lines. One goroutine may read while
// another writes.
type MCPStream struct {
	conn net.Conn
	in   *bufio.Reader
}

// Read reads from the server's messages. It returns io.EOF when the server has ended the
// session.
func (m *MCPStream) Read(p []byte) (int, error) { return m.in.Read(p) }

// Write sends bytes of messages to the server.
func (m *MCPStream) Write(p []byte) (int, error) { return m.conn.Write(p) }

// CloseWrite tells the server that no more messages follow. Answers that are still to
// come can be read. It returns errors.ErrUnsupported if the connection cannot be closed
// in one direction, as on Windows.
func (m *MCPStream) CloseWrite() error {
	if half, ok := m.conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close ends the session.
func (m *MCPStream) Close() error { return m.conn.Close() }

var _ io.ReadWriteCloser = (*MCPStream)(nil)
