// Package ports carries requests to lent ports: ports of a lent terminal that its owner
// has opened to those at the host who see the terminal. The host decides who may send a
// request, and watches while one is under way; the machine decides once more. Agents
// fetch pages with the tool fetch_page, people see previews in their browsers.
//
//	p := ports.New(ports.Options{Terminals: terminals, Audit: audit})
//	way, err := p.Way(principal, uri, 3000)
//	answer, err := way.RoundTrip(request)
package ports

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host/rights"
	"tether/internal/bounded"
)

// atOnce bounds the requests under way to one port, and those of one principal.
const atOnce = 64

// Errors of ways to ports, and of the requests that they carry.
var (
	// ErrUnseen: there is no such terminal, or the principal does not see it.
	ErrUnseen = errors.New("no such terminal")
	// ErrNotLent: the port is not open, or not any more.
	ErrNotLent = errors.New("the port is not lent")
	// ErrAway: the machine is not connected, or its node of the host is not.
	ErrAway = errors.New("the machine is away")
	// ErrOld: the machine's tether lends no ports.
	ErrOld = errors.New("the machine's tether is too old to lend ports: it needs an update")
)

// Options configure Ports. Terminals and Audit are required.
type Options struct {
	Terminals Terminals
	// Audit records what a principal does, as rights.AuditEvent has it.
	Audit func(kind string, p rights.Principal, terminal, detail string)
	// Unlapsed returns a context that ends with ctx, or when nobody may use this node of
	// a cluster any more; nil without a cluster. done must be called.
	Unlapsed func(ctx context.Context) (_ context.Context, done func())
	// Dial opens a stream to another node, which passes it to its ServeNode; nil without
	// a cluster.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	Log  zerolog.Logger
}

// Terminals are the host's terminals. Its methods are called without locks, from several
// goroutines.
type Terminals interface {
	// Route decides whether a principal may ask a port of the terminal with that URI, as
	// Facts.Find does, and returns the way. If use is not nil, it records that in the
	// terminal's Lent, in the same step, and counts the request unless its node does.
	Route(p *rights.Principal, uri string, port int, use *Use) (Route, error)
	// Here returns the way to the machine of a terminal of this node on which the port is
	// lent, nil if there is none, and counts the request. Another node has decided that
	// it may be sent.
	Here(uri string, port int) *Machine
	// Lendings returns all lendings of a port with that number, whoever may see them.
	Lendings(port int) []Lending
}

// Route is the way of requests to a port.
type Route struct {
	Machine *Machine   // nil if the machine is at another node
	Node    string     // that node
	Reader  ahp.Reader // who asks, in the words of the machine's grants
	Since   int64      // ahp.LentPort.SinceMs
}

// Ports are the lent ports of a host. It is safe for concurrent use.
type Ports struct {
	opts    Options
	asks    bounded.Slots                 // of requests under way, by reader and by port
	fetches bounded.Slots                 // of pages that agents fetch, by reader and by machine
	asked   bounded.Map[string, struct{}] // who was recorded as one who asks a port
	between *http.Transport               // to other nodes; nil without a cluster
	ctx     context.Context               // ends with Close
	close   context.CancelFunc
}

// New returns Ports. Close it.
func New(o Options) *Ports {
	p := &Ports{opts: o, asks: bounded.Slots{Each: atOnce}, fetches: bounded.Slots{Each: fetchesAtOnce}}
	p.ctx, p.close = context.WithCancel(context.Background())
	if o.Dial != nil {
		p.between = newBetween(o.Dial)
	}
	return p
}

// Close ends the requests that are under way here, and refuses further ones with ErrAway.
func (p *Ports) Close() {
	p.close()
	if p.between != nil {
		p.between.CloseIdleConnections()
	}
}

// Way is a principal's way to a lent port of a terminal. It is safe for concurrent use.
type Way struct {
	of   *Ports
	p    rights.Principal
	uri  string
	port int
	call string // ahp.PortsCall; "" for requests to the dev server
}

// Way returns the way to a lent port of the terminal with that URI, for requests of a
// principal to the dev server there: method, path, headers and body arrive as they are,
// but for the name of the server. Each request is checked anew, and ends within a moment
// when the principal loses the right, with one of the errors above.
func (p *Ports) Way(who rights.Principal, uri string, port int) (*Way, error) {
	if _, err := p.opts.Terminals.Route(&who, uri, port, nil); err != nil {
		return nil, err
	}
	return &Way{of: p, p: who, uri: uri, port: port}, nil
}

// RoundTrip implements http.RoundTripper. The caller must close the answer's body.
func (w *Way) RoundTrip(r *http.Request) (*http.Response, error) {
	q, err := w.Begin(r.Context())
	if err != nil {
		return nil, err
	}
	a, err := q.RoundTrip(r.WithContext(q.ctx))
	if err != nil || a.Body == http.NoBody {
		q.End()
		return a, err
	}
	a.Body = &endingBody{a.Body, q}
	return a, nil
}

// Request is a request under way.
type Request struct {
	w     *Way
	route Route
	asked context.Context // of who asks
	ctx   context.Context
	over  func() // safe to be called again
}

// Begin begins one request: it waits for its turn, checks the principal's right, and
// watches that until End.
func (w *Way) Begin(ctx context.Context) (*Request, error) {
	p := w.of
	free, err := p.asks.Take(ctx, "reader "+w.p.Key(), fmt.Sprint("port ", w.port, " ", w.uri))
	if err != nil {
		return nil, err
	}
	within, unlapsed := ctx, func() {}
	if p.opts.Unlapsed != nil {
		within, unlapsed = p.opts.Unlapsed(ctx)
	}
	life := w.p.Life()
	q := &Request{w: w, asked: ctx}
	use := &Use{p: w.p, port: w.port}
	q.ctx, use.end = context.WithCancelCause(within)
	revoked := context.AfterFunc(life, func() { use.end(ErrUnseen) })
	closed := context.AfterFunc(p.ctx, func() { use.end(ErrAway) })
	q.over = sync.OnceFunc(func() {
		revoked()
		closed()
		unlapsed()
		use.end(nil)
		use.leave()
		free()
	})
	q.route, err = p.opts.Terminals.Route(&w.p, w.uri, w.port, use)
	switch {
	case err != nil:
	case life.Err() != nil:
		err = ErrUnseen
	case p.ctx.Err() != nil:
		err = ErrAway
	}
	if err != nil {
		q.End()
		return nil, err
	}
	if w.call == "" && p.asked.Add(fmt.Sprint(w.p.Key(), " ", w.uri, " ", w.port, " ", q.route.Since), struct{}{}, time.Now().Add(math.MaxInt64)) { // a page has many requests
		p.opts.Audit(rights.AuditPort, w.p, w.uri, fmt.Sprintf("port %d is asked", w.port))
	}
	return q, nil
}

// Context ends with the principal's right to send the request, with one of the errors
// above as its cause, with who asks, or with End.
func (q *Request) Context() context.Context { return q.ctx }

// End ends the request, if it has not ended. It must be called.
func (q *Request) End() { q.over() }

// RoundTrip implements http.RoundTripper for the one request, whose context must be that
// of q or below it. The caller must close the answer's body.
func (q *Request) RoundTrip(r *http.Request) (*http.Response, error) {
	out, err := q.outgoing(r)
	if err != nil {
		return nil, err
	}
	var by http.RoundTripper = q.w.of.between
	if q.route.Machine != nil {
		by = q.route.Machine
	}
	a, err := by.RoundTrip(out)
	if err != nil {
		return nil, cmp.Or(q.ended(), fmt.Errorf("%w: %w", ErrAway, err))
	}
	a.Request = r
	return a, nil
}

// ended returns why the request was ended here, nil if it was not, or by who has sent it.
func (q *Request) ended() error {
	if q.ctx.Err() == nil || q.asked.Err() != nil {
		return q.asked.Err()
	}
	return context.Cause(q.ctx)
}

// outgoing returns the request as it goes to the other side.
func (q *Request) outgoing(r *http.Request) (*http.Request, error) {
	reader, err := json.Marshal(q.route.Reader)
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
	out.Header.Set(ahp.PortsTerminal, q.w.uri)
	out.Header.Set(ahp.PortsPort, strconv.Itoa(q.w.port))
	out.Header.Set(ahp.PortsReader, string(reader))
	if q.w.call != "" {
		out.Header.Set(ahp.PortsCall, q.w.call)
	}
	out.URL = &url.URL{Scheme: "http", Host: cmp.Or(q.route.Node, "machine"), Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	out.Host, out.RequestURI = "localhost:"+strconv.Itoa(q.w.port), ""
	return out, nil
}

// endingBody is the body of an answer. It ends with the right to it.
type endingBody struct {
	io.ReadCloser
	q *Request
}

// Read implements io.Reader.
func (b *endingBody) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); err == nil {
		return n, nil
	}
	if err != io.EOF {
		err = cmp.Or(b.q.ended(), err)
	}
	b.q.End()
	return n, err
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.q.End()
	return err
}
