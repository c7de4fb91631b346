package wsconn

import (
	"bufio"
	"fmt"
	"net"
	"net/http"

	"github.com/coder/websocket"
)

// Accept upgrades a request to a WebSocket connection. Everything that decides whether
// the client may connect, token, Host and Origin, is checked by the caller before it,
// with one exception: unless [Options.OriginChecked], a foreign Origin is refused. On any
// error Accept has answered the request.
//
// The connection outlives the request; its context should not be used after Accept
// returned.
func Accept(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	o = o.withDefaults()
	hw := &hijackWriter{ResponseWriter: w, opts: o}
	ws, err := websocket.Accept(hw, r, &websocket.AcceptOptions{
		InsecureSkipVerify: o.OriginChecked,
		CompressionMode:    o.compression(),
	})
	if err != nil {
		return nil, fmt.Errorf("wsconn: accept: %w", err)
	}
	return newConn(ws, hw.link, o), nil
}

// A hijackWriter puts a [link] between the library and the connection.
type hijackWriter struct {
	http.ResponseWriter
	opts Options
	link *link // set by Hijack
}

// Hijack implements http.Hijacker.
func (w *hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.link = newLink(c, w.opts.WriteTimeout)
	rw.Writer.Reset(w.link) // empty: the server has written its answer
	return w.link, rw, nil
}
