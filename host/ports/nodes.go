package ports

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
// stream of bytes (Options.Dial). The node at which somebody asks has decided that they
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
func newBetween(dial func(ctx context.Context, node string) (net.Conn, error)) *http.Transport {
	config, protocols := betweenHTTP2()
	return &http.Transport{
		DialContext: func(ctx context.Context, _, node string) (net.Conn, error) {
			node, _, err := net.SplitHostPort(node)
			if err != nil {
				return nil, err
			}
			return dial(ctx, node)
		},
		Protocols: protocols, HTTP2: config, IdleConnTimeout: betweenIdle, DisableCompression: true, MaxResponseHeaderBytes: betweenHead,
	}
}

// ServeNode serves the requests of another node for lent ports of machines here, until
// the stream or ctx ends.
func (p *Ports) ServeNode(ctx context.Context, stream net.Conn) {
	config, protocols := betweenHTTP2()
	s := &http.Server{Handler: http.HandlerFunc(p.passOn), Protocols: protocols, HTTP2: config, MaxHeaderBytes: betweenHead, ErrorLog: log.New(p.opts.Log, "", 0)}
	oneconn.Serve(ctx, s, stream)
}

// passOn passes another node's request on to its machine.
func (p *Ports) passOn(w http.ResponseWriter, r *http.Request) {
	refuse := func(w http.ResponseWriter, _ *http.Request, err error) {
		w.Header().Set(ahp.PortsError, ErrAway.Error())
		http.Error(w, ErrAway.Error(), http.StatusBadGateway)
		if err != nil {
			p.opts.Log.Debug().Err(err).Msg("a request of another node for a lent port")
		}
	}
	port, err := strconv.Atoi(r.Header.Get(ahp.PortsPort))
	if err != nil {
		refuse(w, r, nil)
		return
	}
	machine := p.opts.Terminals.Here(r.Header.Get(ahp.PortsTerminal), port)
	if machine == nil {
		refuse(w, r, nil)
		return
	}
	(&httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "machine" },
		Transport: machine, FlushInterval: -1, ErrorHandler: refuse, ErrorLog: log.New(p.opts.Log, "", 0),
	}).ServeHTTP(w, r)
}
