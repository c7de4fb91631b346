package lentports

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// webSocket is the only protocol to which a connection may change.
const webSocket = "websocket"

// ask asks the server. If it agrees to an upgrade, the answer has status 200, and its
// body are the bytes that the server sends; from are those that it gets, and unblock ends
// a read of those.
func (x *way) ask(out *http.Request, q *request, from io.Reader, unblock func()) (*http.Response, error) {
	if q.upgrade {
		out.Body, out.ContentLength = nil, 0
	}
	resp, err := x.RoundTrip(out)
	if err != nil || resp.StatusCode >= http.StatusOK {
		return resp, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !q.upgrade || resp.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(resp.Header.Get("Upgrade"), webSocket) {
		resp.Body.Close()
		return nil, fmt.Errorf("it answers with status %d, which nobody asked for", resp.StatusCode)
	}
	u := &upgraded{ReadWriteCloser: conn, from: from, unblock: unblock}
	u.stop = context.AfterFunc(out.Context(), func() { _ = conn.Close() }) // the transport has let go of it
	u.sending.Go(u.send)
	q.upgraded = true
	resp.StatusCode, resp.Status, resp.Body, resp.ContentLength = http.StatusOK, "", u, -1
	return resp, nil
}

// upgraded is a connection to a server that has left HTTP.
type upgraded struct {
	io.ReadWriteCloser
	from    io.Reader
	unblock func()
	stop    func() bool

	sending sync.WaitGroup
	sent    atomic.Bool // from has ended
}

func (u *upgraded) send() {
	_, err := io.CopyBuffer(u.ReadWriteCloser, u.from, make([]byte, smallBuffer))
	u.sent.Store(err == nil)
	_ = u.ReadWriteCloser.Close() // a browser that has ended reads no more
}

// Read implements io.Reader.
func (u *upgraded) Read(p []byte) (n int, err error) {
	if n, err = u.ReadWriteCloser.Read(p); err != nil && u.sent.Load() {
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer. It returns when nobody reads what the server was to get.
func (u *upgraded) Close() error {
	u.stop()
	err := u.ReadWriteCloser.Close()
	u.unblock()
	u.sending.Wait()
	return err
}
