package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tether/ahp"
	"tether/host/page"
	"tether/host/rights"
	"tether/jsonrpc"
)

// A lent port is a port of a lent terminal that its owner has opened to those at the host
// who see the terminal. Requests go to its machine, which decides once more. This file
// decides who may send them, for each door; see Host.Port.

// portsAtOnce bounds the requests under way to one port, and those of one principal.
const portsAtOnce = 64

// Errors of Host.Port, and of the requests that it carries.
var (
	// ErrPortUnseen: there is no such terminal, or the principal does not see it.
	ErrPortUnseen = errors.New("no such terminal")
	// ErrPortNotLent: the port is not open, or not any more.
	ErrPortNotLent = errors.New("the port is not lent")
	// ErrPortAway: the machine is not connected, or its node of the host is not.
	ErrPortAway = errors.New("the machine is away")
	// ErrPortOld: the machine's tether lends no ports.
	ErrPortOld = errors.New("the machine's tether is too old to lend ports: it needs an update")
)

// openPorts are what a terminal's owner has opened, and who uses it. Guarded by the
// host's mutex.
type openPorts struct {
	fetched map[int64]int64       // how often each open port was asked, by its number
	uses    map[*portUse]struct{} // requests under way
}

// portUse is a request under way.
type portUse struct {
	p    rights.Principal
	port int
	end  context.CancelCauseFunc
}

// Port returns the way to a lent port of the terminal with that URI, for requests of a
// principal to the dev server there: method, path, headers and body arrive as they are,
// but for the name of the server. Each request is checked anew, and ends within a moment
// when the principal loses the right, with one of the errors above. The caller must close
// the answers' bodies.
func (h *Host) Port(p rights.Principal, uri string, port int) (http.RoundTripper, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.portLocked(&p, uri, port); err != nil {
		return nil, err
	}
	return &portTransport{h: h, p: p, uri: uri, port: port}, nil
}

// portRoute is how a request gets to a port.
type portRoute struct {
	t      *terminal
	by     http.RoundTripper
	at     string // the name of the other side, for by
	reader ahp.Reader
	since  int64 // ahp.LentPort.SinceMs
}

// portLocked decides whether a principal may ask a port, and finds the way.
func (h *Host) portLocked(p *rights.Principal, uri string, port int) (r portRoute, err error) {
	t := h.knownLocked(uri)
	if t == nil {
		return r, ErrPortUnseen
	}
	if err := h.mayAskLocked(p, t, port); err != nil {
		return r, err
	}
	v := h.roster.Viewer(*p)
	r = portRoute{t: t, reader: h.readerLocked(&v, &t.creator.principal, t.withdrawn)}
	r.since = t.lentPort(port).SinceMs
	if p.Guest != "" {
		r.reader = ahp.Reader{Guest: strings.TrimPrefix(p.Name, page.GuestName)}
	}
	if m := t.mirror(); m != nil {
		r.by, r.at = h.between, m.node
		return r, nil
	}
	if r.by, err = t.creator.portsLocked(); err != nil {
		return r, err
	}
	r.at = "machine"
	return r, nil
}

// mayAskLocked decides whether a principal may ask a port of a terminal.
func (h *Host) mayAskLocked(p *rights.Principal, t *terminal, port int) error {
	v := h.roster.Viewer(*p)
	v.GuestPort = 0 // with it, a guest sees nothing at all
	_, sees := v.Sees(t.subject, h.roster)
	switch {
	case !sees || t.gone() || p.Guest != "" && p.GuestPort != port:
		return ErrPortUnseen
	case !t.remote() || t.state.Lifecycle.Exited():
		return ErrPortNotLent
	case t.isAway():
		return ErrPortAway
	case !t.creator.ports:
		return ErrPortOld
	}
	if l := t.lentPort(port); l == nil || l.GuestsOnly && p.Guest == "" {
		return ErrPortNotLent
	}
	return nil
}

// lentPort returns an open port, nil if it is none.
func (t *terminal) lentPort(port int) *ahp.LentPort {
	for i := range t.state.Meta.Ports {
		if l := &t.state.Meta.Ports[i]; l.Port == int64(port) {
			return l
		}
	}
	return nil
}

// openPortsLocked returns the ports that are open to the audience.
func (t *terminal) openPortsLocked() (all []page.OpenPort) {
	for _, l := range t.state.Meta.Ports {
		if l.GuestsOnly {
			continue
		}
		all = append(all, page.OpenPort{Port: l.Port, Write: l.Write, Until: l.UntilMs, Fetched: t.ports.fetched[l.Port]})
	}
	return all
}

// recheckPortsLocked ends the requests to ports of t whose principals may not send them
// any more.
func (h *Host) recheckPortsLocked(t *terminal) {
	for use := range t.ports.uses {
		if err := h.mayAskLocked(&use.p, t, use.port); err != nil {
			use.end(err)
		}
	}
}

// lentPorts serves ahp.MethodLentPorts: the owner of a terminal replaces its open ports.
func (c *conn) lentPorts(r *jsonrpc.Request) error {
	var p ahp.LentPortsParams
	if err := ahp.DecodeParams(r.Params, &p); err != nil {
		return invalid(err)
	}
	if !c.may(rights.Lend) {
		return c.denied("lend ports")
	}
	h := c.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.terminals[p.Channel]
	if t == nil || !t.ownedBy(c) {
		return errUnknownChannel
	}
	h.setPortsLocked(t, p.Ports)
	return r.Reply(struct{}{})
}

// setPortsLocked replaces the open ports of a terminal.
func (h *Host) setPortsLocked(t *terminal, all []ahp.LentPort) {
	before := t.state.Meta.Ports
	if slices.Equal(before, all) {
		return
	}
	t.state.Meta.Ports = all
	h.auditPortsLocked(t, before)
	h.recheckPortsLocked(t)
	t.touch(inCatalogue)
}

// auditPortsLocked records which ports were opened, to whom, and which were closed after
// how many requests.
func (h *Host) auditPortsLocked(t *terminal, before []ahp.LentPort) {
	has := func(all []ahp.LentPort, l ahp.LentPort) bool {
		return slices.ContainsFunc(all, func(o ahp.LentPort) bool {
			return o.Port == l.Port && o.Write == l.Write && o.GuestsOnly == l.GuestsOnly
		})
	}
	var said []string
	for _, l := range before {
		if !has(t.state.Meta.Ports, l) {
			said = append(said, fmt.Sprintf("port %d is closed, after %d requests", l.Port, t.ports.fetched[l.Port]))
			delete(t.ports.fetched, l.Port)
		}
	}
	for _, l := range t.state.Meta.Ports {
		if !has(before, l) {
			how := "reading"
			if l.Write {
				how = "reading and writing"
			}
			who := cmp.Or(strings.Join(t.mayWatchLocked(), ", "), "nobody")
			if l.GuestsOnly {
				who = "guests with a link for it"
			}
			said = append(said, fmt.Sprintf("port %d is open for %s to %s", l.Port, how, who))
		}
	}
	if len(said) == 0 || h.opts.Audit == nil || t.mirror() != nil || h.closed {
		return
	}
	by, uri := remote{principal: t.creator.principal}, t.uri
	h.work.Go(func() {
		for _, detail := range said {
			h.audit(rights.AuditPort, by, rights.AuditEvent{Terminal: uri, Detail: detail})
		}
	})
}

// countPortLocked counts a request to a port.
func (h *Host) countPortLocked(t *terminal, port int64) {
	if t.ports.fetched == nil {
		t.ports.fetched = map[int64]int64{}
	}
	t.ports.fetched[port]++
	t.touch(inRows)
}

// portTransport implements http.RoundTripper for one principal and port.
type portTransport struct {
	h    *Host
	p    rights.Principal
	uri  string
	port int
	call string // ahp.PortsCall; "" for a request to the dev server
}

// RoundTrip implements http.RoundTripper.
func (w *portTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	free, err := w.h.portAsks.Take(r.Context(), "reader "+w.p.Key(), fmt.Sprint("port ", w.port, " ", w.uri))
	if err != nil {
		return nil, err
	}
	ctx, route, done, err := w.begin(r.Context())
	over := sync.OnceFunc(func() { done(); free() })
	if err != nil {
		over()
		return nil, err
	}
	if w.call == "" && w.h.portLooks.first(fmt.Sprint(w.p.Key(), " ", w.uri, " ", w.port, " ", route.since)) { // a page has many requests
		w.h.audit(rights.AuditPort, remote{principal: w.p}, rights.AuditEvent{Terminal: w.uri, Detail: fmt.Sprintf("port %d is asked", w.port)})
	}
	out, err := w.outgoing(r.WithContext(ctx), &route)
	if err != nil {
		over()
		return nil, err
	}
	resp, err := route.by.RoundTrip(out)
	if err != nil {
		err = cmp.Or(ended(ctx, r.Context()), fmt.Errorf("%w: %w", ErrPortAway, err))
		over()
		return nil, err
	}
	resp.Request = r
	if resp.Body == http.NoBody {
		over()
		return resp, nil
	}
	resp.Body = &endingBody{resp.Body, func() error { return ended(ctx, r.Context()) }, over}
	return resp, nil
}

// begin checks the principal's right and records the request. ctx ends when the right
// does. The caller must call done, also after an error.
func (w *portTransport) begin(parent context.Context) (ctx context.Context, route portRoute, done func(), err error) {
	h, live := w.h, w.p.Life()
	parent, unlapsed := h.unlapsed(parent)
	ctx, end := context.WithCancelCause(parent)
	revoked := context.AfterFunc(live, func() { end(ErrPortUnseen) })
	closed := context.AfterFunc(h.ctx, func() { end(ErrPortAway) })
	use := &portUse{w.p, w.port, end}
	h.mu.Lock()
	defer h.mu.Unlock()
	route, err = h.portLocked(&w.p, w.uri, w.port)
	if err == nil && live.Err() != nil {
		err = ErrPortUnseen
	}
	done = func() {
		revoked()
		closed()
		unlapsed()
		end(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		if route.t != nil {
			delete(route.t.ports.uses, use)
		}
	}
	if err != nil {
		return ctx, route, done, err
	}
	if route.t.ports.uses == nil {
		route.t.ports.uses = map[*portUse]struct{}{}
	}
	route.t.ports.uses[use] = struct{}{}
	if route.t.mirror() == nil { // else its node counts
		h.countPortLocked(route.t, int64(w.port))
	}
	return ctx, route, done, nil
}

// ended returns why a request was ended here, nil if it was not, or by who has sent it.
func ended(ctx, asked context.Context) error {
	if ctx.Err() == nil || asked.Err() != nil {
		return asked.Err()
	}
	return context.Cause(ctx)
}

// outgoing returns the request as it goes to the other side.
func (w *portTransport) outgoing(r *http.Request, route *portRoute) (*http.Request, error) {
	reader, err := json.Marshal(route.reader)
	if err == nil && len(reader) > ahp.MaxPortsReader {
		err = fmt.Errorf("the names of who asks have %d bytes, at most %d are allowed", len(reader), ahp.MaxPortsReader)
	}
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	for name := range out.Header {
		if strings.HasPrefix(name, ahp.PortsPrefix) && name != ahp.PortsUpgrade {
			out.Header.Del(name)
		}
	}
	out.Header.Set(ahp.PortsTerminal, w.uri)
	out.Header.Set(ahp.PortsPort, strconv.Itoa(w.port))
	out.Header.Set(ahp.PortsReader, string(reader))
	if w.call != "" {
		out.Header.Set(ahp.PortsCall, w.call)
	}
	out.URL = &url.URL{Scheme: "http", Host: route.at, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	out.Host, out.RequestURI = "localhost:"+strconv.Itoa(w.port), ""
	return out, nil
}

// endingBody is the body of an answer. It ends with the right to it.
type endingBody struct {
	io.ReadCloser
	ended func() error
	over  func()
}

// Read implements io.Reader.
func (b *endingBody) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); err == nil {
		return n, nil
	}
	if err != io.EOF {
		err = cmp.Or(b.ended(), err)
	}
	b.over()
	return n, err
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.over()
	return err
}
