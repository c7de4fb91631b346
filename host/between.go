package host

import (
	"context"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"

	"tether/ahp"
	"tether/internal/oneconn"
)

// Requests for lent ports of machines at other nodes go to those nodes, as HTTP/2 over a
// stream of bytes (Nodes.Dial). The node at which somebody asks has decided that they
// may; the machine decides once more.

// Bounds of HTTP/2 between two nodes.
const (
	betweenStreams   = 1024            // requests at a time
	betweenStream    = 512 << 10       // bytes of an answer that wait to be read
	betweenAll       = 4 << 20         // bytes of all answers that do
	betweenHead      = 64 << 10        // bytes of a request's header fields
	betweenIdle      = time.Minute     // after which an unused stream ends
	betweenHeartbeat = 5 * time.Second // of silence, and for the answer to a ping
)

func betweenHTTP2() (*http.HTTP2Config, *http.Protocols) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	return &http.HTTP2Config{MaxConcurrentStreams: betweenStreams, MaxReadFrameSize: 16 << 10, MaxReceiveBufferPerStream: betweenStream,
		MaxReceiveBufferPerConnection: betweenAll, SendPingTimeout: betweenHeartbeat, PingTimeout: betweenHeartbeat}, protocols
}

// newBetween returns the way to other nodes, whose names are those of the servers in
// requests. It opens a stream to each when the first request goes there.
func newBetween(nodes Nodes) *http.Transport {
	config, protocols := betweenHTTP2()
	return &http.Transport{
		DialContext: func(ctx context.Context, _, node string) (net.Conn, error) {
			node, _, err := net.SplitHostPort(node)
			if err != nil {
				return nil, err
			}
			return nodes.Dial(ctx, node)
		},
		Protocols: protocols, HTTP2: config, IdleConnTimeout: betweenIdle, DisableCompression: true, MaxResponseHeaderBytes: betweenHead,
	}
}

// ServeNode serves the requests of another node for lent ports of machines here, until
// the stream or ctx ends.
func (h *Host) ServeNode(ctx context.Context, stream net.Conn) {
	config, protocols := betweenHTTP2()
	s := &http.Server{Handler: http.HandlerFunc(h.servePort), Protocols: protocols, HTTP2: config, MaxHeaderBytes: betweenHead, ErrorLog: log.New(h.log, "", 0)}
	oneconn.Serve(ctx, s, stream)
}

// servePort passes another node's request on to its machine.
func (h *Host) servePort(w http.ResponseWriter, r *http.Request) {
	by := h.machineHere(r.Header.Get(ahp.PortsTerminal), r.Header.Get(ahp.PortsPort))
	refuse := func(w http.ResponseWriter, _ *http.Request, err error) {
		w.Header().Set(ahp.PortsError, ErrPortAway.Error())
		http.Error(w, ErrPortAway.Error(), http.StatusBadGateway)
		if err != nil {
			h.log.Debug().Err(err).Msg("a request of another node for a lent port")
		}
	}
	if by == nil {
		refuse(w, r, nil)
		return
	}
	(&httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "machine" },
		Transport: by, FlushInterval: -1, ErrorHandler: refuse, ErrorLog: log.New(h.log, "", 0),
	}).ServeHTTP(w, r)
}

// machineHere returns the way to the machine of a terminal of this node, nil if there is
// none, and counts a request to a port of it.
func (h *Host) machineHere(uri, port string) http.RoundTripper {
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[uri]
	if t == nil || t.mirror() != nil || t.bound() == nil || t.lentPort(number) == nil {
		return nil
	}
	by, err := t.creator.portsLocked()
	if err != nil {
		return nil
	}
	h.countPortLocked(t, int64(number))
	return by
}
