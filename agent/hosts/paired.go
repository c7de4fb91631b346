package hosts

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/pairing"
	"tether/platform/dirs"
	"tether/platform/roam"
	"tether/vocab"
)

// Options configures Paired. All but Timeout, Secrets and Watch are required.
type Options struct {
	Dirs    dirs.Dirs
	Secrets Secrets
	Uplink  config.Uplink
	Version string // of this program
	Machine string // the name of this machine, as hosts are told it
	Logger  *zerolog.Logger
	Audit   func(policy.Event)
	// Report says that something does not work, or with an empty text that it works
	// again.
	Report func(cause, text string)
	// Up is called when a host has let this machine in; more counts the other times since
	// the last call.
	Up func(host string, more int)
	// Watched, if not nil, is told who watches a terminal at a host whenever the host
	// says so. It must not block.
	Watched func(host string, id term.ID, who []vocab.Watcher)
	// Checkout, if not nil, returns the git work tree that a directory shows, the zero
	// value if there is none or the host must not know it. It must not block for long.
	Checkout func(host, dir string) vocab.Checkout
	// HostGrants accepts grants by administrators of a host.
	HostGrants bool
	// Park bounds how long hosts may keep terminals while this machine is away.
	Park time.Duration
	// Timeout, if not 0, replaces the times for which a person waits at most for hosts to
	// hear of something. For tests.
	Timeout time.Duration
	// Watch replaces roam.Watch in tests.
	Watch func(context.Context, func(roam.Change)) error
}

// Paired holds the hosts with which this machine is paired, and the links to them. It is
// safe for concurrent use once Link has returned.
//
// Goroutines: one per link, and one that watches for moves of the machine; Close waits
// for them.
type Paired struct {
	opts     Options
	store    *store
	turn     chan struct{} // 1 slot: hosts come and go one at a time
	attempts attempts      // to pair by a code
	private  sync.Map      // privateHost by name, see LinkPrivate

	// Set by Link.
	pool  *term.Pool
	links *links
}

// Open reads the paired hosts. A list that is damaged is put aside, which is reported;
// one that others may read is an error.
func Open(o Options) (*Paired, error) {
	if o.Watch == nil {
		o.Watch = roam.Watch
	}
	p := &Paired{opts: o, turn: make(chan struct{}, 1)}
	return p, p.open()
}

// Link begins to link to all hosts, and lends them terminals of the pool. tools returns
// the tools that a host's sessions are offered.
func (p *Paired) Link(pool *term.Pool, tools func(host string) Tools) {
	p.pool = pool
	p.links = &links{
		pool: pool, version: p.opts.Version, machine: p.opts.Machine, settings: p.opts.Uplink, log: p.opts.Logger, watch: p.opts.Watch,
		tools: tools, desk: p.newDesk, up: p.opts.Up, watched: p.opts.Watched, checkout: p.opts.Checkout, hostGrants: p.opts.HostGrants, park: p.opts.Park, atMost: p.atMost, all: map[string]*running{},
	}
	for _, h := range p.store.list() {
		p.links.start(h, p.store.endpoint(h))
	}
}

// Close ends all links once their hosts know the exits of all terminals, or after the
// time within.
func (p *Paired) Close(within time.Duration) { p.links.close(within) }

func (p *Paired) atMost(d time.Duration) time.Duration { return cmp.Or(p.opts.Timeout, d) }

// Has reports whether a host of that name is paired.
func (p *Paired) Has(name string) bool {
	_, ok := p.store.find(name)
	return ok
}

// ID returns what names the pairing with a host for as long as it lasts, "" if there is
// none. Pairing again with a host of the same name makes another one.
func (p *Paired) ID(name string) string {
	h, ok := p.store.find(name)
	if !ok {
		return ""
	}
	return name + "/" + h.ClientID
}

// Default returns the name of the host to which terminals are lent if a request names
// none.
func (p *Paired) Default() (name string, ok bool) {
	h, ok := p.store.byDefault()
	return h.Name, ok
}

// Announced returns how the host knows a terminal, see uplink.Link.Announced. It waits
// for that until ctx ends.
func (p *Paired) Announced(ctx context.Context, host string, id term.ID) (uri, title string, ok bool) {
	r := p.links.find(host)
	if r == nil {
		return "", "", false
	}
	return r.link.Announced(ctx, id)
}

// SecretStore returns where secrets are kept, for the person to read; nil while that is
// not settled.
func (p *Paired) SecretStore() *localapi.SecretStore { return p.store.place() }

// auditHost records that a host was paired or forgotten.
func (p *Paired) auditHost(t policy.EventType, name, url string) {
	p.opts.Audit(policy.Event{Type: t, Actor: term.User, Host: name, Detail: url})
}

// Status returns the known state of each host in the order of pairing. It sends no
// request to a host.
func (p *Paired) Status() []localapi.HostStatus {
	p.reportAside()
	all := []localapi.HostStatus{}
	for _, h := range p.store.list() {
		all = append(all, p.hostStatus(h))
	}
	return all
}

func (p *Paired) hostStatus(h host) localapi.HostStatus {
	first, ok := p.store.byDefault()
	s := localapi.HostStatus{Name: h.Name, URL: h.URL, Also: h.Also, Pin: h.Pin, Credential: h.credential(), Default: ok && first.Name == h.Name, Lent: []vocab.Lent{}}
	if h.HostKey != nil {
		s.HostKey = pairing.Fingerprint(h.HostKey)
	}
	link, ok := p.links.status(h.Name)
	if !ok {
		return s // being paired or unpaired just now
	}
	s.State, s.Since, s.DownSince = string(link.State), link.Since, link.DownSince
	s.Unacked, s.Gaps, s.GapBytes = link.Unacked, link.Gaps, link.GapBytes
	if !link.NextRetry.IsZero() {
		s.NextRetry = time.Now().Add(time.Until(link.NextRetry)) // also when the wall clock was set meanwhile
	}
	s.Tools = p.toolsStatus(h)
	s.Protocol, s.Server, s.Resume, s.Refused = link.Version, link.Server, link.Resume, link.Refused
	s.LentMeans, s.Owner, s.Shares = link.LentMeans, link.Owner, link.Shares
	s.At = link.At
	s.Park = link.Park.Milliseconds()
	if link.ClockSkew.Abs() > time.Second { // smaller differences are below the precision of Date and the delay
		s.ClockSkew = int64(link.ClockSkew / time.Second)
	}
	if link.Err != nil {
		s.Error = link.Err.Error()
	}
	s.Withdrawn, s.KeptUntil = link.Withdrawn, link.KeptUntil
	for _, t := range link.Terminals {
		s.Lent = append(s.Lent, t.Lent)
	}
	return s
}
