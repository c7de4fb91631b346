package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"tether/agent/devserver"
	"tether/agent/fetch"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
)

// fetchesAtOnce bounds the pages that one principal fetches at a time: each may take some
// MB and half a minute.
const fetchesAtOnce = 8

// MayFetch implements agenttools.Fetcher. An agent at a host sees no port that is not
// shared there.
func (a *agentTerminals) MayFetch() bool { return a.host == "" }

// Fetch implements agenttools.Fetcher. Whoever asks gets only what the programs of the
// terminal itself answer on this machine's loopback interface.
func (a *agentTerminals) Fetch(ctx context.Context, id string, r fetch.Request) (*fetch.Page, error) {
	if actor := a.access.Actor(); a.server.noNetwork(actor) {
		return nil, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("%s has no network (network = \"none\"), so it may fetch no page", actor)}
	}
	done, ok := a.server.fetches.Try(a.access.Actor().String())
	if !ok {
		return nil, &localapi.Error{Code: localapi.CodeLimit, Message: fmt.Sprintf("%d pages are being fetched already, the maximum: try again", fetchesAtOnce)}
	}
	defer done()
	h, err := a.find(id)
	if err != nil {
		return nil, err
	}
	if h.Info().Exit != nil {
		return nil, agenttools.ErrExited
	}
	s := devserver.Of(h)
	if r.Port == 0 {
		if r.Port, err = s.Only(); err != nil {
			return nil, err
		}
	}
	r.Dirs = s.Dirs(a.server.opts.Checkouts)
	page, err := fetch.Get(ctx, func(ctx context.Context) (net.Conn, error) { return s.Dial(ctx, r.Port) }, r)
	if err != nil {
		return nil, err
	}
	if h = a.shown(h); h.IsMasked() {
		mask(page, h)
	}
	return page, nil
}

// mask masks the texts of a page as those of its terminal.
func mask(p *fetch.Page, h term.Handle) {
	if p.IsText() {
		p.Body = []byte(h.Redact(p.Text()))
	}
	p.URL, p.Elsewhere = h.Redact(p.URL), h.Redact(p.Elsewhere)
	for name, values := range p.Header {
		for i := range values {
			// A value has its name before it, as a person's configuration has.
			masked := h.Redact(name + ": " + values[i])
			p.Header[name][i] = strings.TrimPrefix(masked, name+": ")
		}
	}
	p.Header.Del("Set-Cookie")
}

// fetch answers with a page of a server that runs in the terminal.
func (s *Server) fetch(w http.ResponseWriter, r *http.Request, req localapi.FetchRequest) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	if h.Info().Exit != nil {
		return term.ErrExited
	}
	t := &agentTerminals{server: s, access: s.access(r), masked: h.IsMasked()}
	page, printed, err := agenttools.FetchPage(r.Context(), t, s.matching, ActorFrom(r.Context()).String()+" "+string(h.ID()), mcpTerminal{h.Masked()},
		fetch.Request{Port: req.Port, Path: req.Path, Method: req.Method, Headers: req.Headers})
	var refused fetch.Error
	switch {
	case errors.As(err, &refused):
		return localapi.BadRequest("%s", refused)
	case err != nil:
		return err
	}
	a := localapi.Fetched{SchemaVersion: localapi.SchemaVersion, URL: page.URL, Status: page.Status, Headers: []localapi.Header{}, RedirectsTo: page.Elsewhere, Body: page.Body, Size: page.Size, Trouble: page.Trouble,
		FirstByteMs: page.FirstByte.Milliseconds(), TookMs: page.Took.Milliseconds()}
	for _, name := range slices.Sorted(maps.Keys(page.Header)) {
		for _, value := range page.Header[name] {
			a.Headers = append(a.Headers, localapi.Header{Name: name, Value: value})
		}
	}
	if req.Readable && page.IsHTML() {
		a.Body = []byte(page.Readable())
	}
	if printed != nil {
		a.Printed = printed.Text
		a.Problems = localapi.ProblemsOf(printed.Problems)
	}
	return reply(w, a)
}
