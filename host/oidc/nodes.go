package oidc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tether/host/access"
	"tether/host/leader"
	"tether/host/rights"
	"tether/pairing"
)

const (
	// askWithin bounds a request that another node answers: a request of the command line
	// may wait for its person.
	askWithin = pairing.WaitTime + 2*requestTime + 5*time.Second
	// endWithin bounds the time to end a session at somebody's request on the page.
	endWithin = 12 * time.Second
	// lookEvery is how often a node looks for sessions that another node has ended.
	lookEvery = time.Second
)

var errNoLeader = &refusal{http.StatusServiceUnavailable, "no node of this host answers logins now: try again in a minute"}

// question is a request that another node has received, for the leader.
type question struct {
	End    string      `json:"end,omitempty"` // instead of a request: the session to end
	Method string      `json:"method,omitempty"`
	URI    string      `json:"uri,omitempty"`
	Host   string      `json:"host,omitempty"`
	Remote string      `json:"remote,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

// passedOn are the headers that a Provider reads.
var passedOn = []string{"Authorization", "Content-Type", "Cookie", "Origin"}

// answer is the leader's answer.
type answer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

// leads reports whether this node connects to the identity provider itself.
func (p *Provider) leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes == nil || p.kept != nil
}

// pass makes the leader, which may be this node, answer a request.
func (p *Provider) pass(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogout))
	if err != nil {
		http.Error(w, "the request is longer than 64 KiB", http.StatusRequestEntityTooLarge)
		return
	}
	if r.URL.Path == logoutPath && r.Method == http.MethodPost {
		form, _ := url.ParseQuery(string(body)) // what it has understood of it
		if err := p.plausible(form.Get("logout_token")); err != nil {
			p.refuseLogout(w, r, err) // without a question to the leader
			return
		}
	}
	q := question{Method: r.Method, URI: r.URL.RequestURI(), Host: r.Host, Remote: r.RemoteAddr, Header: http.Header{}, Body: body}
	for _, name := range passedOn {
		if values := r.Header.Values(name); len(values) > 0 {
			q.Header[name] = values
		}
	}
	a, err := p.askLeader(r.Context(), q)
	switch what, cli := strings.CutPrefix(r.URL.Path, pairing.LoginPath+"/"); {
	case err == nil:
		maps.Copy(w.Header(), a.Header)
		w.WriteHeader(a.Status)
		_, _ = w.Write(a.Body) // the client is gone
	case cli && what != "allow":
		p.refuseCLI(w, r, err)
	default:
		p.finish(w, r, err)
	}
}

// askLeader returns the leader's answer.
func (p *Provider) askLeader(ctx context.Context, q question) (answer, error) {
	a, err := p.nodes.Ask(ctx, q)
	switch {
	case errors.Is(err, leader.ErrTooLong):
		return a, &refusal{http.StatusRequestHeaderFieldsTooLarge, "the request is too long"}
	case errors.Is(err, leader.ErrNone):
		return a, fmt.Errorf("%w: %w", errNoLeader, err)
	case err == nil && (a.Status < 200 || a.Status > 599): // perhaps from a newer release
		return a, errInternal
	}
	return a, err
}

// answer answers a question at the leader.
func (p *Provider) answer(ctx context.Context, q question) (a answer, leads bool) {
	if !p.leads() {
		return a, false
	}
	return p.reply(ctx, q), true
}

func (p *Provider) reply(ctx context.Context, q question) answer {
	if q.End != "" {
		if p.end(q.End) != nil {
			return answer{Status: http.StatusNotFound}
		}
		return answer{Status: http.StatusOK}
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, q.URI, bytes.NewReader(q.Body))
	if err != nil {
		return answer{Status: http.StatusBadRequest}
	}
	r.Host, r.RemoteAddr, r.Header = q.Host, q.Remote, q.Header
	w := recorder{status: http.StatusOK, header: http.Header{}}
	p.serve(&w, r)
	return answer{Status: w.status, Header: w.header, Body: w.body.Bytes()}
}

// recorder is a ResponseWriter that stores the answer.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// lead connects to the identity provider for all nodes until ctx ends. It starts with the
// sessions that the former leader has stored.
func (p *Provider) lead(ctx context.Context, kept access.Place) error {
	p.looking.Lock()
	doc := p.doc(kept)
	f, err := doc.Now()
	if err == nil {
		p.take(p.sessionsOf(f))
		p.setKept(doc)
	}
	p.looking.Unlock()
	if err != nil {
		return err
	}
	defer p.setKept(nil)
	p.renewAll(ctx)
	return nil
}

func (p *Provider) setKept(doc *access.Doc[store]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept, p.taken = doc, nil
}

// look applies what the leader has changed since the last look.
func (p *Provider) look() {
	p.looking.Lock()
	defer p.looking.Unlock()
	f, err := p.theirs.Now()
	if err != nil {
		p.log.Error().Err(err).Msg("the logins of the cluster cannot be read")
		return
	}
	p.mu.Lock()
	known := p.kept != nil || f == p.taken
	if !known {
		p.taken = f
	}
	p.mu.Unlock()
	if !known {
		p.take(p.sessionsOf(f))
	}
}

// take replaces this node's sessions by those that the leader has stored.
func (p *Provider) take(all []kept) {
	there := map[[sha256.Size]byte]bool{}
	slices.SortFunc(all, func(a, b kept) int { return b.Asked.Compare(a.Asked) })
	people := map[string]rights.Identity{} // by subject, with the newest groups, which older sessions must not replace
	for _, k := range all {
		if len(k.Token) != sha256.Size {
			continue
		}
		if newest, ok := people[k.Subject]; ok {
			k.Identity = newest
		}
		people[k.Subject] = k.Identity
		hash := [sha256.Size]byte(k.Token)
		there[hash] = true
		p.mu.Lock()
		s := p.sessions[hash]
		if s != nil {
			s.identity, s.refresh, s.asked, s.due = k.Identity, k.Refresh, k.Asked, k.Asked.Add(renewAfter)
		}
		p.mu.Unlock()
		if s == nil {
			p.admitKept(k)
		}
	}
	p.mu.Lock()
	var ended []*session
	for hash, s := range p.sessions {
		if !there[hash] {
			ended = append(ended, s)
		}
	}
	p.mu.Unlock()
	for _, s := range ended {
		s.end(errEndedElsewhere)
	}
}

// End implements access.More.
func (p *Provider) End(id string) error {
	if p.nodes == nil {
		return p.end(id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	a, err := p.askLeader(ctx, question{End: id})
	switch {
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return rights.ErrNoEntry
	}
	return nil
}
