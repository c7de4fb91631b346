package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"tether/agent/fetch"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
	"tether/platform/proc"
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
	s := ownPorts{h}
	if r.Port == 0 {
		if r.Port, err = s.only(); err != nil {
			return nil, err
		}
	}
	i := h.InfoAsIs()
	r.Dirs = []string{i.StartCwd, i.Cwd}
	if c, ok := a.server.opts.Checkouts.Known(i.Cwd)[i.Cwd]; ok && c.Worktree != "" {
		r.Dirs = append(r.Dirs, c.Worktree)
	}
	page, err := fetch.Get(ctx, func(ctx context.Context) (net.Conn, error) { return s.dial(ctx, r.Port) }, r)
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

// ownPorts are the ports of a terminal on which its own programs listen.
type ownPorts struct{ term.Handle }

// only returns the one port on which the terminal's programs listen.
func (s ownPorts) only() (int, error) {
	all, err := listening(s.Handle)
	if err != nil {
		return 0, err
	}
	var found []int
	for _, l := range all[s.ID()] {
		if addr, err := netip.ParseAddr(l.Address); err == nil && (addr.IsLoopback() || addr.IsUnspecified()) && l.Port >= fetch.LeastPort && !slices.Contains(found, l.Port) {
			found = append(found, l.Port)
		}
	}
	switch len(found) {
	case 0:
		return 0, &localapi.Error{Code: localapi.CodeNotFound, Message: fmt.Sprintf("no program of %s listens on a port of this machine", s.ID()), Hint: "wait for it: tether wait --port"}
	case 1:
		return found[0], nil
	}
	return 0, localapi.BadRequest("programs of %s listen on the ports %s; choose one", s.ID(), strings.Trim(fmt.Sprint(found), "[]"))
}

// dial connects to a port if nothing but programs of the terminal can answer, and checks
// that once more when the connection is there: a port may change hands.
func (s ownPorts) dial(ctx context.Context, port int) (net.Conn, error) {
	hosts, err := s.hosts(port)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	var errs []error
	for _, host := range hosts {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		still, err := s.hosts(port)
		if err != nil || !slices.Contains(still, host) {
			conn.Close()
			return nil, cmp.Or(err, error(&agenttools.ClosedError{Port: port, Other: true}))
		}
		return conn, nil
	}
	return nil, errors.Join(errs...)
}

// hosts returns the loopback addresses at which only programs of the terminal can answer.
func (s ownPorts) hosts(port int) ([]string, error) {
	all, err := proc.OnPort(port, running(s.Handle)...)
	if err != nil {
		return nil, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("this system does not tell which program has port %d: %v", port, err)}
	}
	hosts, err := reachable(all, port)
	if closed, ok := errors.AsType[*agenttools.ClosedError](err); ok {
		why := fmt.Sprintf("no program of %s listens on port %d", s.ID(), port)
		if closed.Other {
			why += "; another program has it, such as one that publishes a container's port"
		}
		return nil, &localapi.Error{Code: localapi.CodeNotFound, Message: why, Hint: "tether ls shows on which ports its programs listen"}
	}
	return hosts, err
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
