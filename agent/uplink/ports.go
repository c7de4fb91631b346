package uplink

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"

	"tether/ahp"
	"tether/internal/bounded"
	"tether/internal/oneconn"
)

// Bounds of a host's requests for lent ports.
const (
	portStreams      = 256       // requests of a link at a time
	portStreamsEach  = 64        // requests for one port
	portHeaderBytes  = 64 << 10  // of one request
	portStreamBytes  = 256 << 10 // of a request's body that waits here to be read
	portBodiesBytes  = 4<<20 - 1 // of all bodies together; net/http allows no more
	portHeadersTable = 4 << 10   // of compressed header fields
)

var errEarlyStream = errors.New("the host has sent requests for lent ports, although its marker does not say that it does")

// onStream is called on the read goroutine when the host begins a stream.
func (s *session) onStream(stream net.Conn) {
	select {
	case s.streams <- stream:
	default: // one waits: the host begins and ends them faster than they are served
		_ = stream.Close()
	}
}

// takeStream starts to serve the host's requests on a stream.
func (s *session) takeStream(ctx context.Context, stream net.Conn) {
	if !s.marker.Ports {
		_ = stream.Close()
		s.fail(errEarlyStream)
		return
	}
	s.wg.Go(func() { s.servePorts(ctx, stream) })
}

// servePorts serves HTTP/2 on a stream until that or ctx ends, and returns when no
// request is being served any more.
func (s *session) servePorts(ctx context.Context, stream net.Conn) {
	p := &portServer{s: s, slots: bounded.Slots{Each: portStreamsEach}}
	server := &http.Server{
		Handler: p, Protocols: new(http.Protocols), MaxHeaderBytes: portHeaderBytes, ErrorLog: log.New(s.log, "", 0),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: portStreams, MaxReadFrameSize: 16 << 10,
			MaxReceiveBufferPerStream: portStreamBytes, MaxReceiveBufferPerConnection: portBodiesBytes,
			MaxDecoderHeaderTableSize: portHeadersTable, MaxEncoderHeaderTableSize: portHeadersTable},
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	oneconn.Serve(ctx, server, stream)
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.serving.Wait()
}

// portServer serves the requests of one stream.
type portServer struct {
	s     *session
	slots bounded.Slots

	serving sync.WaitGroup
	mu      sync.Mutex
	ended   bool // nothing is served any more
}

// begins counts a request, and reports whether it is to be served.
func (p *portServer) begins() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.serving.Add(1)
	}
	return !p.ended
}

// ServeHTTP serves one request.
func (p *portServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.begins() {
		return
	}
	defer p.serving.Done()
	uri := r.Header.Get(ahp.PortsTerminal)
	le := p.s.link.byURI(uri)
	if le == nil {
		refusePort(w, http.StatusNotFound, "no such terminal")
		return
	}
	done, ok := p.slots.Try(uri + " " + r.Header.Get(ahp.PortsPort))
	if !ok {
		refusePort(w, http.StatusServiceUnavailable, "too many requests for this port at a time")
		return
	}
	defer done()
	p.s.link.opts.Ports(w, r, le.h.ID())
}

// refusePort answers a request for the machine itself.
func refusePort(w http.ResponseWriter, status int, why string) {
	w.Header().Set(ahp.PortsError, why)
	http.Error(w, why, status)
}
