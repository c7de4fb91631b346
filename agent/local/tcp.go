package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/proc"
)

const (
	// tcpBuffer bounds the system's buffer for a client that does not read, in bytes. By
	// default, Linux lets it grow to 4 MiB.
	tcpBuffer = 256 << 10
	// tokenProtocol begins the WebSocket subprotocol that carries a token for a browser,
	// which cannot set a header. It is never selected in the answer.
	tokenProtocol = "tether.token."
)

// ListenLoopback listens on an address such as "127.0.0.1:0", where port 0 means any free
// port. It refuses an address that other machines could reach.
func ListenLoopback(address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen address %q must be an address and a port, such as 127.0.0.1:0", address)
	}
	if host != "localhost" && host != "127.0.0.1" && !net.ParseIP(host).Equal(net.IPv6loopback) {
		return nil, fmt.Errorf("listen address %q is not local; use 127.0.0.1, [::1] or localhost", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // localhost may resolve to another address here
		l.Close()
		return nil, fmt.Errorf("listen address %q is %s, which can be reached from other machines", address, l.Addr())
	}
	return tcpListener{l}, nil
}

// tcpListener bounds the system's buffers for its connections.
type tcpListener struct{ net.Listener }

func (l tcpListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.SetWriteBuffer(tcpBuffer) // it only bounds memory, so a failure does not matter
	}
	return conn, err
}

// ServeTCP serves connections of l, which ListenLoopback has made, until Close, and
// closes l. Clients must send a token of Options.Tokens.
func (s *Server) ServeTCP(l net.Listener) error {
	at, ok := l.Addr().(*net.TCPAddr)
	if !ok || s.opts.Tokens == nil {
		l.Close()
		return errors.New("loopback TCP takes a TCP listener and tokens")
	}
	if _, err := s.opts.Tokens.User(); err != nil {
		l.Close()
		return err
	}
	s.tcpPort.Store(int64(at.Port))
	err := s.tcp.Serve(&listener{Listener: l, table: s.conns})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// onTCP admits clients through TCP, where every program of every user of this machine and
// every page in a browser can connect. It checks in this order: the Host must be ours, so
// that a name which an attacker resolves to this machine is refused; a browser's page
// must have a listed origin; the request must have a valid token. The process that sends
// the token then determines the identity, see tcpCaller. Before that, no request gets an
// answer from a handler. Everything that a token has opened ends when the token is
// revoked.
func (s *Server) onTCP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		page, err := s.admitPage(r)
		if err != nil {
			fail(w, err)
			return
		}
		if page != "" {
			allowPage(w.Header(), page)
			if r.Method == http.MethodOptions {
				w.WriteHeader(http.StatusNoContent) // the answer is in the header
				return
			}
		}
		g := s.opts.Tokens.find(takeToken(r), false)
		if g == nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			fail(w, &localapi.Error{Code: localapi.CodeUnauthorized, Message: "a valid token is required",
				Hint: "send Authorization: Bearer TOKEN; tether token show prints yours, tether token create makes one for an agent"})
			return
		}
		r, end := bound(r, g)
		defer end()
		s.as(w, r, s.tcpCaller(r, g), next)
	})
}

// bound returns the request with a context that ends when the token of g is revoked.
func bound(r *http.Request, g *grant) (with *http.Request, end func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(g.live, func() { cancel(context.Cause(g.live)) })
	return r.WithContext(ctx), func() { stop(); cancel(nil) }
}

// tcpClient is the client's end of a TCP connection. Its processes are looked up once, at
// the first valid token, so that clients without a token cost nothing.
type tcpClient struct {
	client, server net.Addr

	once    sync.Once
	peers   []peer // processes that have it open
	foreign bool   // another user's process has it
	err     error  // why they cannot be found
}

// tcpKey is the key of a connection's tcpClient in its context.
type tcpKey struct{}

// withTCPClient stores the connection's addresses for its requests.
func withTCPClient(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(withConn(ctx, conn), tcpKey{}, &tcpClient{client: conn.RemoteAddr(), server: conn.LocalAddr()})
}

// find looks for the processes.
func (c *tcpClient) find() {
	client, ok := c.client.(*net.TCPAddr)
	server, ok2 := c.server.(*net.TCPAddr)
	if !ok || !ok2 {
		c.err = fmt.Errorf("%v is no TCP address", c.client)
		return
	}
	found, err := proc.FindTCPClient(client.AddrPort(), server.AddrPort())
	c.foreign, c.err = found.Foreign, err
	for _, id := range found.Processes {
		c.peers = append(c.peers, peer{ID: id})
	}
}

// tcpCaller returns the identity of a request with the token of g. The processes at the
// other end have priority, as at the socket: an agent among them outweighs the token. If
// none can be found, an agent's token counts. With a person's token, another user's
// process counts as the person without a sign, and any other as an agent: a program that
// an agent has started can hide.
func (s *Server) tcpCaller(r *http.Request, g *grant) Caller {
	conn, ok := r.Context().Value(tcpKey{}).(*tcpClient)
	if !ok {
		return nobody(errors.New("the connection is not known"))
	}
	conn.once.Do(conn.find)
	if len(conn.peers) == 0 {
		return conn.unfound(g)
	}
	shown, result := g.caller(), nobody(errPeerGone)
	for _, p := range conn.peers { // processes that have ended meanwhile do not count
		c := s.caller(p)
		switch {
		case c.Actor.Role == term.RoleAgent && c.renames && shown.Actor.Role == term.RoleAgent: // it may give another name
			return shown
		case c.Actor.Role == term.RoleAgent:
			return c
		case c.Actor == term.User:
			result = shown
		}
	}
	return result
}

// unfound returns the caller with the token of g if no process was found.
func (c *tcpClient) unfound(g *grant) Caller {
	shown := g.caller()
	switch {
	case errors.Is(c.err, proc.ErrNoConnection):
		return nobody(errPeerGone)
	case shown.Actor != term.User:
		return shown
	case c.foreign && c.err == nil:
		shown.Sign, shown.NoSign = "", "a program of another user of this machine has opened the connection"
		return shown
	}
	why := "no process that has this connection open can be found"
	if c.err != nil {
		why += ": " + c.err.Error()
	}
	return Caller{Actor: term.Agent(unreadAgent), Why: why + ", so the token of " + g.Principal + " gives it no more than an agent has", NoSign: why}
}

// overTCP reports whether a request came through TCP.
func overTCP(r *http.Request) bool { return r.Context().Value(tcpKey{}) != nil }

// onlySocket returns h, restricted to clients of the socket: whoever has stolen a token
// must not manage tokens.
func (s *Server) onlySocket(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if overTCP(r) {
			return s.refused(r, &localapi.Error{Code: localapi.CodeDenied, Message: "this works only through the local socket", Hint: "use the command line"})
		}
		return h(w, r)
	}
}

// harden sets headers that keep browsers from interpreting or showing an answer.
func harden(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Origin")
}

// ourHost reports whether a Host header has one of this listener's names.
func (s *Server) ourHost(host string) bool {
	port := strconv.FormatInt(s.tcpPort.Load(), 10)
	return slices.ContainsFunc([]string{"localhost", "127.0.0.1", "[::1]"}, func(name string) bool { return host == name+":"+port || port == "80" && host == name })
}

// admitPage refuses a foreign Host, and requests from pages whose origin is not listed.
// It returns the page's origin if it is listed, and "" if no browser sent the request.
func (s *Server) admitPage(r *http.Request) (string, *localapi.Error) {
	if !s.ourHost(r.Host) {
		return "", &localapi.Error{Code: localapi.CodeForbidden, Message: "this address accepts only the Host localhost, 127.0.0.1 or [::1] with its port"}
	}
	origins, page := r.Header["Origin"]
	_, browser := r.Header["Sec-Fetch-Site"]
	switch {
	case !page && !browser:
		return "", nil
	case !page: // an image, a form, or a typed address
		return "", &localapi.Error{Code: localapi.CodeForbidden, Message: "only pages of listed origins may connect"}
	case len(origins) != 1 || !slices.Contains(s.opts.Origins, origins[0]):
		return "", &localapi.Error{Code: localapi.CodeForbidden, Message: "this origin is not allowed",
			Hint: "to trust this origin with your terminals, add it to local.origins in config.toml"}
	}
	return origins[0], nil
}

// allowPage lets a page with a listed origin read answers and send the same requests as a
// program. Other pages do not get these permissions.
func allowPage(h http.Header, page string) {
	h.Set("Access-Control-Allow-Origin", page)
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, "+localapi.PrincipalHeader)
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id")
	h.Set("Access-Control-Allow-Private-Network", "true")
	h.Set("Access-Control-Max-Age", "600")
}

// takeToken returns the token of a request and removes it, so that no handler can pass it
// on. A browser's WebSocket sends it as a subprotocol. A token in the URL is not
// accepted, because URLs end up in logs and histories.
func takeToken(r *http.Request) string {
	token := ""
	if values := r.Header["Authorization"]; len(values) == 1 {
		if kind, rest, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(kind, "Bearer") {
			token = strings.TrimSpace(rest)
		}
	}
	_, header := r.Header["Authorization"]
	r.Header.Del("Authorization")
	const protocols = "Sec-Websocket-Protocol"
	var others []string
	for p := range strings.SplitSeq(strings.Join(r.Header[protocols], ","), ",") {
		p = strings.TrimSpace(p)
		shown, is := strings.CutPrefix(p, tokenProtocol)
		switch {
		case is && !header && token == "":
			token = shown
		case !is && p != "":
			others = append(others, p)
		}
	}
	r.Header.Del(protocols)
	if len(others) > 0 {
		r.Header.Set(protocols, strings.Join(others, ", "))
	}
	return token
}
