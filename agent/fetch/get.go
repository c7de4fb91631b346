package fetch

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"tether/internal/loopback"
)

// Bounds of an answer.
const (
	timeout      = 30 * time.Second // of a request with its redirects
	maxHead      = 64 << 10         // bytes of an answer's headers
	maxRead      = 8 << 20          // bytes that are read of a body
	maxRedirects = 5
)

// Dial connects to the server. It is called for each connection, and checks each time
// that the right program listens.
type Dial func(ctx context.Context) (net.Conn, error)

// Page is a server's answer.
type Page struct {
	URL    string // the last one that was asked, after redirects
	Status int
	Header http.Header
	Type   string // media type without parameters, in lower case; "" if the server does not say
	Body   []byte // at most Request.Most bytes, from the beginning
	Size   int64  // bytes of the body, as far as it was read
	Whole  bool   // the body was read to its end
	Hash   string // SHA-256 of the body in hexadecimal, if Whole
	// Elsewhere is where the server redirects to, if that is another server.
	Elsewhere string
	// Trouble says why the body ended early; "" if it did not.
	Trouble   string
	FirstByte time.Duration // from the request to the first byte of the answer
	Took      time.Duration // to the end
}

// Get asks for a page. It returns an Error for a request that is refused, dial's error,
// or that of the connection; it blocks for 30 s at most. The server may be slow, endless
// or hostile.
func Get(ctx context.Context, dial Dial, r Request) (*Page, error) {
	u, err := r.check()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	began, t := time.Now(), NewTransport(dial, TransportOptions{})
	for range maxRedirects {
		page, next, err := r.ask(ctx, t, u, began)
		if err != nil || next == nil {
			return page, err
		}
		u = next
	}
	return nil, fmt.Errorf("more than %d redirects", maxRedirects)
}

// ask makes one request. next is where the same server redirects to.
func (r *Request) ask(ctx context.Context, t *Transport, u *url.URL, began time.Time) (page *Page, next *url.URL, err error) {
	resp, first, err := r.do(ctx, t, u)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	page = &Page{URL: u.String(), Status: resp.StatusCode, Header: resp.Header, FirstByte: first.Sub(began)}
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		if next, page.Elsewhere = r.follow(u, to); next != nil {
			if resp.StatusCode < http.StatusTemporaryRedirect && !Reads(r.Method) {
				r.Method = http.MethodGet // as browsers do, and 303 says
			}
			return nil, next, r.visit(next)
		}
	}
	page.Type, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	page.read(resp, r.Most)
	page.Took = time.Since(began)
	return page, nil, nil
}

// follow returns where a redirect leads if that is the same server, and otherwise what it
// names.
func (r *Request) follow(from *url.URL, to string) (next *url.URL, elsewhere string) {
	u, err := from.Parse(to)
	if err != nil || len(to) > maxPath {
		return nil, fmt.Sprintf("%.200q", to)
	}
	if u.Scheme != from.Scheme || u.User != nil || u.Port() != from.Port() || !loopback.Is(u.Hostname()) {
		return nil, u.Redacted()
	}
	next = &url.URL{Scheme: from.Scheme, Host: from.Host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return next, ""
}

// do makes one request. It sets the scheme of u to the one in which the server
// answered.
func (r *Request) do(ctx context.Context, t *Transport, u *url.URL) (resp *http.Response, first time.Time, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { first = time.Now() }})
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), nil)
	if err != nil {
		return nil, first, err
	}
	req.Header.Set("User-Agent", "tether")
	req.Header.Set("Accept", "text/html, application/json;q=0.9, */*;q=0.8")
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	resp, err = t.RoundTrip(req)
	switch {
	case err == nil:
		u.Scheme = resp.Request.URL.Scheme
		return resp, first, nil
	case refusedToDial(err):
		return nil, first, err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, first, fmt.Errorf("the server on port %d has not answered within %v: %w", r.Port, timeout, ctx.Err())
	}
	return nil, first, fmt.Errorf("the server on port %d does not answer as HTTP does: %w", r.Port, cmp.Or(ctx.Err(), err))
}

// read reads a body, of which it keeps the beginning.
func (p *Page) read(resp *http.Response, most int) {
	var body io.Reader = io.LimitReader(resp.Body, maxRead)
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") { // although nobody asked for it
		plain, err := gzip.NewReader(body)
		if err != nil {
			p.Trouble = "the body is not the gzip that its headers announce"
			return
		}
		body = io.LimitReader(plain, maxRead) // it may be a bomb
	}
	hash := sha256.New()
	var kept bytes.Buffer
	keep := &limited{w: &kept, left: most}
	n, err := io.Copy(io.MultiWriter(hash, keep), body)
	p.Size, p.Body = n, kept.Bytes()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		p.Trouble = fmt.Sprintf("the body had not ended after %v", timeout)
	case err != nil:
		p.Trouble = fmt.Sprintf("the body ended early: %v", cmp.Or(errors.Unwrap(err), err))
	case n == maxRead:
		p.Trouble = fmt.Sprintf("the body is longer than %d bytes", maxRead)
	default:
		p.Whole, p.Hash = true, fmt.Sprintf("%x", hash.Sum(nil))
	}
}

// limited passes on the first bytes, and drops the others.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	_, err := l.w.Write(p[:n])
	return len(p), err
}
