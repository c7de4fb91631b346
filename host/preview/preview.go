// Package preview shows lent ports in people's browsers, each lending at a name of its
// own: https://3000-RANDOM.preview.example/. So no page of a dev server shares cookies,
// storage or a service worker with the host's page or with another one's.
//
// The package knows names, codes, cookies and HTTP. Who may see a port, and the way to
// it, are the host's, see Options.Find. All nodes of a cluster with one Key serve the
// same names, codes and cookies.
//
//	p, err := preview.New(preview.Options{Domain: "preview.example", Secure: true, Key: key, Find: find})
//	if p.Serves(r) { p.ServeHTTP(w, r) }
package preview

import (
	"context"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// Options configure Previews.
type Options struct {
	// Domain is the name below which previews have theirs, with the port in their URLs
	// unless that is the scheme's own. See CheckDomain.
	Domain string
	// Secure says that browsers reach previews by https. Otherwise they must be on this
	// machine.
	Secure bool
	// Key signs names, codes and cookies.
	Key [32]byte
	// Find returns the port with a label for a visitor, or why there is none; a *Problem
	// is shown to the visitor as it is. It is called at each request.
	Find func(ctx context.Context, visitor, label string) (*Port, error)
	// Used notes used codes; nil means in memory, for one node alone.
	Used Used
	// Note is called once about each header that a port's dev server may not send; nil
	// means that nobody wants to know.
	Note func(terminal string, port int, header, text string)
}

// Port is a lent port for one visitor.
type Port struct {
	Number int
	Write  bool   // for more than reading
	Name   string // of the terminal, as people read it
	// Begin begins a request of the visitor's to the dev server. A *Problem is shown as
	// it is.
	Begin func(ctx context.Context) (Request, error)
}

// Request is a request under way. An answer with ahp.PortsError does not come from the
// dev server, but from the machine, which says why. A redirect to the dev server itself
// comes without its name.
type Request interface {
	// RoundTrip sends it, with Context or one below that.
	http.RoundTripper
	// Context ends with the visitor's right to see the port.
	Context() context.Context
	// End is called once, after the answer.
	End()
}

// Problem is shown to a visitor in place of the preview.
type Problem struct {
	Status int
	Text   string // a sentence for people
	Lasts  bool   // if not, the page looks again until the preview is back
}

// Error returns the text.
func (p *Problem) Error() string { return p.Text }

const (
	// breakEvery is how often a write that waits for the browser is ended, when it may
	// not go on.
	breakEvery = 50 * time.Millisecond
	// moveTime is how long a browser may take for each moveStep of a body that it sends,
	// and for reading each piece of what a WebSocket brings.
	moveTime = 30 * time.Second
	moveStep = 64 << 10
	// maxAnswerHeader bounds the header of a dev server's answer, in bytes.
	maxAnswerHeader = 64 << 10
)

// Previews serves the names below a domain. It is safe for concurrent use.
type Previews struct {
	opts   Options // set once
	name   string  // of the domain, without a port
	suffix string  // what follows a label in Host
	scheme string
	said   said
}

// New returns Previews, or an error if the domain is none.
func New(o Options) (*Previews, error) {
	domain, err := parseDomain(o.Domain)
	if err != nil {
		return nil, err
	}
	if o.Used == nil {
		o.Used = newUsedHere()
	}
	if o.Note == nil {
		o.Note = func(string, int, string, string) {}
	}
	p := &Previews{opts: o, name: domain.name, suffix: "." + domain.text(), scheme: "http"}
	if o.Secure {
		p.scheme = "https"
	}
	return p, nil
}

// Source is the previews in a Content-Security-Policy.
func (p *Previews) Source() string { return p.scheme + "://*" + p.suffix }

// Serves reports whether a request is for a name below the domain, however it is written.
func (p *Previews) Serves(r *http.Request) bool {
	return strings.HasSuffix(strings.TrimRight(hostname(r.Host), "."), "."+p.name)
}

// Problems before anything is known about the visitor are the same for all names.
var (
	errWrongName  = &Problem{Status: http.StatusMisdirectedRequest, Text: "There is no preview with this name.", Lasts: true}
	errBadRequest = &Problem{Status: http.StatusBadRequest, Text: "This is no request that a browser sends to a page.", Lasts: true}
	errForeign    = &Problem{Status: http.StatusForbidden, Text: "Requests of other pages are refused.", Lasts: true}
	errNoVisitor  = &Problem{Status: http.StatusForbidden, Text: "Open this preview with a click at the terminal, on the host's page, or with its link.", Lasts: true}
	errReading    = &Problem{Status: http.StatusForbidden, Text: "This port is lent for reading only. Its person can lend it with --write.", Lasts: true}
	errNoAnswer   = &Problem{Status: http.StatusBadGateway, Text: "The answer of the machine broke off, or did not come. It may be away for a moment."}
	errBigHeader  = &Problem{Status: http.StatusBadGateway, Text: "The header of the dev server's answer is too large.", Lasts: true}
)

// ServeHTTP serves a request for which Serves is true.
func (p *Previews) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := p.serve(w, r); err != nil {
		p.answer(w, r, err)
	}
}

func (p *Previews) serve(w http.ResponseWriter, r *http.Request) error {
	host := strings.ToLower(r.Host)
	label, ok := strings.CutSuffix(host, p.suffix)
	switch {
	case !ok || !isLabel(label):
		return errWrongName
	case !strings.HasPrefix(r.RequestURI, "/") || r.URL.IsAbs() || r.Method == http.MethodConnect || r.Method == http.MethodTrace, len(r.Header["Origin"]) > 1:
		return errBadRequest
	case r.URL.Path == openPath:
		return p.open(w, r, label)
	}
	own := p.scheme + "://" + host
	if foreign(r, own) {
		return errForeign
	}
	visitor, ok := p.visitor(r, label)
	if !ok {
		return errNoVisitor
	}
	port, err := p.opts.Find(r.Context(), visitor, label)
	if err != nil {
		return err
	}
	if err := allowed(r, port); err != nil {
		return err
	}
	q, err := port.Begin(r.Context())
	if err != nil {
		return err
	}
	defer q.End()
	out := newAnswer(q.Context(), w)
	defer out.close()
	if r.ContentLength != 0 {
		r.Body = &slowBody{ReadCloser: r.Body, conn: http.NewResponseController(w)}
	}
	p.pass(out, r.WithContext(q.Context()), port, q, own)
	return nil
}

// allowed refuses what a port that is lent for reading only does not allow. WebSockets
// are allowed, since pages reload themselves with them.
func allowed(r *http.Request, port *Port) error {
	switch {
	case r.ContentLength != 0 && isUpgrade(r):
		return errBadRequest
	case port.Write:
		return nil
	case r.ContentLength != 0:
		return errReading
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	return errReading
}

// foreign reports whether a request was not made by the preview's own page, nor by a
// person who follows a link. Neighbours' pages are as foreign as others, also where the
// browser would send them our cookie.
func foreign(r *http.Request, own string) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	switch origin, some := r.Header["Origin"]; {
	case some && origin[0] == "null": // of a page that wants to send no referrer, or of a frame that is nobody's
		return site != "same-origin"
	case some:
		return origin[0] != own
	case isUpgrade(r):
		return true
	case site == "same-origin", site == "none":
		return false
	}
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	return site == "" || !reading || r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// isUpgrade reports whether a request asks for a WebSocket.
func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(strings.TrimSpace(r.Header.Get("Upgrade")), "websocket")
}

// pass sends the request to the dev server, and its answer to the browser.
func (p *Previews) pass(w http.ResponseWriter, r *http.Request, port *Port, q Request, own string) {
	proxy := httputil.ReverseProxy{
		Rewrite:        func(out *httputil.ProxyRequest) { p.rewrite(out, port, own) },
		Transport:      way{q},
		ModifyResponse: func(a *http.Response) error { return p.clean(a, port) },
		ErrorHandler:   p.answer,
		ErrorLog:       quiet,
	}
	proxy.ServeHTTP(w, r)
}
