package oidc

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"tether/host"
	"tether/host/access"
	"tether/pairing"
)

// AboutLogins is what nodes ask their leader about.
const AboutLogins = "logins"

const (
	// askWithin bounds a request that another node answers: one of the command line may wait for its person.
	askWithin = pairing.WaitTime + 2*requestTime + 5*time.Second
	// leaderWithin is how long a request waits for a node that leads, and leaderEvery how often it looks.
	leaderWithin = 12 * time.Second
	leaderEvery  = 250 * time.Millisecond
	// lookEvery is how often a node looks for sessions that another one has ended.
	lookEvery = time.Second
	// maxQuestion bounds a request that is passed on, in bytes.
	maxQuestion = 2 * maxLogout
)

// Shared is what the Providers of a host's nodes share. One node, the leader, speaks with the identity provider for all and is the only one
// that changes sessions; browsers and command lines may come to any.
type Shared struct {
	Nodes Nodes
	// Place has the sessions, sealed with Key.
	Place access.Place
	// Key, of 32 bytes, is the same at all nodes and known to nobody else. It seals what passes through the nodes' engine, whose operator
	// must not be able to act for people.
	Key []byte
}

// Nodes are the nodes of a host. host/cluster implements it.
type Nodes interface {
	ID() string
	Leader(about string) (node string)
	Ask(ctx context.Context, node, about string, question []byte) ([]byte, error)
}

var errNoLeader = &refusal{http.StatusServiceUnavailable, "no node of this host answers logins now: try again in a minute"}

// question is a request that came to another node, for the leader.
type question struct {
	ID     string      `json:"id"`            // binds the answer to it
	End    string      `json:"end,omitempty"` // instead of a request: the session to end
	Method string      `json:"method,omitempty"`
	URI    string      `json:"uri,omitempty"`
	Host   string      `json:"host,omitempty"`
	Remote string      `json:"remote,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   []byte      `json:"body,omitempty"`
}

// passedOn are the headers that a Provider looks at.
var passedOn = []string{"Authorization", "Content-Type", "Cookie", "Origin"}

// answer is the answer to it. Elsewhere says that the node does not lead any more.
type answer struct {
	Elsewhere bool        `json:"elsewhere,omitempty"`
	Status    int         `json:"status,omitempty"`
	Header    http.Header `json:"header,omitempty"`
	Body      []byte      `json:"body,omitempty"`
}

// leads reports whether this Provider speaks with the identity provider itself.
func (p *Provider) leads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opts.Shared == nil || p.epoch != 0
}

// pass has the leader answer a request, which may be this node.
func (p *Provider) pass(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLogout))
	if err != nil {
		http.Error(w, "the request is longer than 64 KiB", http.StatusRequestEntityTooLarge)
		return
	}
	q := question{Method: r.Method, URI: r.URL.RequestURI(), Host: r.Host, Remote: r.RemoteAddr, Header: http.Header{}, Body: body}
	for _, name := range passedOn {
		if values := r.Header.Values(name); len(values) > 0 {
			q.Header[name] = values
		}
	}
	a, err := p.askLeader(r.Context(), &q)
	if _, cli := strings.CutPrefix(r.URL.Path, pairing.LoginPath+"/"); err != nil && cli {
		p.refuseCLI(w, r, err)
		return
	}
	if err != nil {
		p.finish(w, r, err)
		return
	}
	maps.Copy(w.Header(), a.Header)
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the client is gone
}

// askLeader returns the leader's answer. It waits for a leader if there is none yet.
func (p *Provider) askLeader(ctx context.Context, q *question) (answer, error) {
	nodes := p.opts.Shared.Nodes
	for began := time.Now(); ; {
		if p.leads() {
			return p.reply(ctx, q), nil
		}
		if node := nodes.Leader(AboutLogins); node != "" && node != nodes.ID() {
			a, err := p.askNode(ctx, node, q)
			_, refused := errors.AsType[*refusal](err)
			switch {
			case refused, err == nil && !a.Elsewhere:
				return a, err
			case errors.Is(err, context.DeadlineExceeded):
				return a, fmt.Errorf("%w: %w", errNoLeader, err) // it may have been done: asking again is up to the person
			}
		}
		if time.Since(began) > leaderWithin {
			return answer{}, errNoLeader
		}
		select {
		case <-time.After(leaderEvery):
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

func (p *Provider) askNode(ctx context.Context, node string, q *question) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	q.ID = rand.Text()
	text, err := json.Marshal(q)
	if err == nil && len(text) > maxQuestion {
		err = &refusal{http.StatusRequestHeaderFieldsTooLarge, "the request is too long"}
	}
	if err != nil {
		return a, err
	}
	data, err := p.opts.Shared.Nodes.Ask(ctx, node, AboutLogins, p.seal.Seal(nil, nil, text, []byte("question")))
	if err == nil {
		data, err = p.seal.Open(nil, nil, data, []byte("answer "+q.ID))
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	return a, err
}

// Answer answers another node's question.
func (p *Provider) Answer(ctx context.Context, sealed []byte) []byte {
	var q question
	text, err := p.seal.Open(nil, nil, sealed, []byte("question"))
	if err != nil || json.Unmarshal(text, &q) != nil {
		return nil // it is not a node that asks
	}
	a := answer{Elsewhere: true}
	if p.leads() {
		a = p.reply(ctx, &q)
	}
	data, _ := json.Marshal(a) // has nothing that cannot be encoded
	return p.seal.Seal(nil, nil, data, []byte("answer "+q.ID))
}

// reply answers a question at the leader.
func (p *Provider) reply(ctx context.Context, q *question) answer {
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

// recorder is a ResponseWriter that keeps the answer.
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

// Lead speaks with the identity provider for all nodes until ctx ends: from the sessions that the former leader has kept, as the leader of
// an epoch that is greater than any before.
func (p *Provider) Lead(ctx context.Context, epoch int64) error {
	var f store
	err := p.opts.Shared.Place.Change(func(old []byte) (sealed []byte, err error) {
		if f, err = p.opened(old); err != nil {
			p.log.Error().Err(err).Msg("the logins of the cluster cannot be used: people have to log in again")
		}
		if f.Epoch > epoch {
			return nil, errSuperseded
		}
		f.Epoch = epoch // the former leader can keep nothing more
		return p.sealed(f)
	})
	if err != nil {
		return err
	}
	p.looking.Lock()
	p.take(f)
	p.setEpoch(epoch)
	p.looking.Unlock()
	defer p.setEpoch(0)
	p.renewAll(ctx)
	return nil
}

func (p *Provider) setEpoch(epoch int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.epoch, p.taken = epoch, access.Version{}
}

// errSuperseded is returned where another leader has kept something.
var errSuperseded = errors.New("another node leads logins")

// replace keeps the sessions where all nodes find them, unless a later leader has kept some.
func (p *Provider) replace(all []kept) error {
	p.mu.Lock()
	epoch := p.epoch
	p.mu.Unlock()
	if epoch == 0 {
		return nil // the leader keeps them
	}
	sealed, err := p.sealed(store{Version: storeVersion, Issuer: p.opts.Issuer, Epoch: epoch, Sessions: all})
	if err != nil {
		return err
	}
	return p.opts.Shared.Place.Change(func(old []byte) ([]byte, error) {
		if before, err := p.opened(old); err == nil && before.Epoch > epoch {
			return nil, errSuperseded
		}
		return sealed, nil
	})
}

func (p *Provider) sealed(f store) ([]byte, error) {
	data, err := json.Marshal(f)
	return p.seal.Seal(nil, nil, data, []byte("sessions")), err
}

// opened is the content of the shared place. It is empty where that is another provider's or, with an error, cannot be read.
func (p *Provider) opened(sealed []byte) (f store, err error) {
	empty := store{Version: storeVersion, Issuer: p.opts.Issuer}
	if sealed == nil {
		return empty, nil
	}
	data, err := p.seal.Open(nil, nil, sealed, []byte("sessions"))
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && f.Version != storeVersion {
		err = fmt.Errorf("version %d is unknown", f.Version)
	}
	if empty.Epoch = f.Epoch; err != nil || f.Issuer != p.opts.Issuer {
		return empty, err
	}
	return f, nil
}

// follow takes over what the leader changes, until ctx ends.
func (p *Provider) follow(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.look()
		case <-ctx.Done():
			return
		}
	}
}

// look takes over what the leader has changed since the last look.
func (p *Provider) look() {
	p.looking.Lock()
	defer p.looking.Unlock()
	version := p.opts.Shared.Place.Version()
	p.mu.Lock()
	known := p.epoch != 0 || version == p.taken
	p.mu.Unlock()
	if known {
		return
	}
	data, err := p.opts.Shared.Place.Read()
	if err != nil {
		return // there is none yet
	}
	f, err := p.opened(data)
	if err != nil {
		p.log.Error().Err(err).Msg("the logins of the cluster cannot be used")
	}
	p.take(f)
	p.mu.Lock()
	p.taken = version
	p.mu.Unlock()
}

// take makes the sessions of this node those that the leader has kept.
func (p *Provider) take(f store) {
	there := map[[sha256.Size]byte]bool{}
	slices.SortFunc(f.Sessions, func(a, b kept) int { return b.Asked.Compare(a.Asked) })
	people := map[string]host.Identity{} // by subject, with the newest groups, which older sessions must not replace
	for _, k := range f.Sessions {
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
	if p.opts.Shared == nil {
		return p.end(id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaderWithin)
	defer cancel()
	a, err := p.askLeader(ctx, &question{End: id})
	switch {
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return host.ErrNoEntry
	}
	return nil
}
