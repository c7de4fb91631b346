package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"slices"
	"strings"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/output"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/internal/change"
	"tether/screen"
	"tether/vocab"
)

// catalogue is a principal's view of all terminals. With p nil it is the host's own,
// which sees everything. It implements only agenttools.Terminals, so nobody can change
// anything through it.
type catalogue struct {
	h *Host
	p *rights.Principal
}

// fromLocked decides whether the principal sees t, and from which position of its text
// on.
func (c catalogue) fromLocked(t *terminal) (from int64, ok bool) {
	if c.p == nil {
		return 0, true
	}
	v := c.h.roster.Viewer(*c.p)
	return v.Sees(t.subject, c.h.roster)
}

// List implements agenttools.Terminals.
func (c catalogue) List() []agenttools.Info {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	all := make([]agenttools.Info, 0, len(c.h.order))
	for t := range c.h.everyLocked() {
		if from, ok := c.fromLocked(t); ok {
			all = append(all, t.infoLocked(from))
		}
	}
	return all
}

// Open implements agenttools.Terminals.
func (c catalogue) Open(id string) (agenttools.Terminal, error) {
	at, ok := c.find(id)
	if !ok {
		return nil, agenttools.ErrNotFound
	}
	c.h.fill(at.t)
	if at, ok = c.find(id); !ok { // it may have been removed meanwhile, or its text may be at another node now
		return nil, agenttools.ErrNotFound
	}
	return at, nil
}

func (c catalogue) find(id string) (at lookedAt, ok bool) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if t := c.h.byID[id]; t != nil {
		from, ok := c.fromLocked(t)
		return lookedAt{h: c.h, t: t, p: c.p, from: from}, ok
	}
	return at, false
}

// Changed implements agenttools.Watchable.
func (c catalogue) Changed(ctx context.Context, since uint64) (uint64, error) {
	v := c.h.roster.Viewer(rights.Principal{Role: rights.RoleAdmin})
	c.h.mu.Lock()
	if c.p != nil {
		v = c.h.roster.Viewer(*c.p)
	}
	use := c.h.holdLocked(v)
	c.h.mu.Unlock()
	defer func() {
		c.h.mu.Lock()
		defer c.h.mu.Unlock()
		c.h.letGoLocked(use)
	}()
	return change.Await(ctx, since, func() (uint64, <-chan struct{}) {
		c.h.mu.Lock()
		defer c.h.mu.Unlock()
		return uint64(use.l.book.version+c.h.sight) + 1, use.l.book.moved.Next() // sight: for changes while nobody holds the list
	})
}

// ownCatalogue is the catalogue of an agent, including the terminals of its session.
type ownCatalogue struct {
	catalogue
	agent string // the name of its principal
}

// List implements agenttools.Terminals.
func (c ownCatalogue) List() []agenttools.Info {
	all := c.catalogue.List()
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for _, t := range c.h.callers.Held(c.agent) {
		if i := slices.IndexFunc(all, func(info agenttools.Info) bool { return info.ID == idOf(t.URI()) }); i >= 0 {
			all[i].Owner = agenttools.OwnerAgent
		}
	}
	return all
}

// lookedAt is one terminal as p sees it, or the host itself if p is nil.
type lookedAt struct {
	h    *Host
	t    *terminal
	p    *rights.Principal
	from int64 // position of the first text that p may see; 0: all
}

// start is the offset of that text; 0 if it may see all.
func (l lookedAt) startLocked() int64 {
	if l.from == 0 {
		return 0
	}
	return l.t.out.OffsetOf(l.from)
}

// Info implements agenttools.Terminal.
func (l lookedAt) Info() agenttools.Info {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return l.t.infoLocked(l.from)
}

// Commands implements agenttools.Terminal.
func (l lookedAt) Commands() []vocab.Command {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	return slices.DeleteFunc(l.t.out.Commands(), func(c vocab.Command) bool { return c.Start < l.startLocked() })
}

// Read implements agenttools.Terminal.
func (l lookedAt) Read(from int64) (agenttools.Reader, error) { return l.newReader(from), nil }

// ReadScreen implements agenttools.ScreenTerminal.
func (l lookedAt) ReadScreen() (agenttools.OldScreen, agenttools.Reader, error) {
	l.h.mu.Lock()
	out := l.t.out
	behind := out.Behind(out.Oldest())
	from, since := max(out.StartOffset(), out.OffsetOf(behind.Pos)), l.startLocked()
	l.h.mu.Unlock()
	old := behind.Show()
	if l.from > 0 { // the screen may show earlier output
		old, from = agenttools.OldScreen{Cols: old.Cols, Rows: old.Rows}, max(from, since)
	}
	return old, l.newReader(from), nil
}

// idOf returns a short, stable name for a terminal that fits into URLs and tool calls;
// its URI may contain anything.
func idOf(uri string) string {
	hash := sha256.Sum256([]byte(uri))
	return "pty-" + strings.ToLower(base32.StdEncoding.EncodeToString(hash[:])[:10])
}

// Machine returns the name of a client's machine: its token's name, else the name
// that it gives itself, else its id.
func (c *client) Machine() string {
	name := c.principal.Name
	if name == "" {
		name = strings.ReplaceAll(screen.Clean(ahp.CleanTitle(c.machine)), "/", "-")
	}
	if name == "" || len(name) > sessions.MaxMachine {
		name = c.id[:min(len(c.id), 8)]
	}
	return name
}

// infoLocked describes t for a viewer who sees its text from the position from on.
func (t *terminal) infoLocked(from int64) agenttools.Info {
	i := t.describeLocked(from)
	i.Start, i.End = t.out.StartOffset(), t.out.EndOffset()
	t.mirrorInfoLocked(&i)
	if from > 0 {
		i.Start = max(i.Start, t.out.OffsetOf(from))
	}
	return i
}

// describeLocked is infoLocked without the offsets. To find where they begin, all
// recorded parts would have to be examined.
func (t *terminal) describeLocked(from int64) agenttools.Info {
	s := t.state
	machine := t.creator.Machine()
	if !t.remote() {
		machine = hostMachine
	}
	i := agenttools.Info{ID: t.id, Cwd: ahp.PathOf(s.Cwd), Owner: agenttools.OwnerUser, Visible: true, CreatedAt: t.created, Machine: machine,
		Name: machine + "/" + t.name, Title: s.Title, Cols: int(s.Cols), Rows: int(s.Rows), Detection: s.SupportsCommandDetection}
	i.Cols, i.Rows = cmp.Or(i.Cols, output.DefaultCols), cmp.Or(i.Rows, output.DefaultRows)
	if line, began, ok := t.out.Running(); ok && (from == 0 || began >= from) {
		i.Running = line
	} else if m := t.mirror(); m != nil && !m.fed && from == 0 {
		i.Running = m.running
	}
	if t.isAway() {
		i.Away, i.AwayWhy = t.away()
	} else {
		i.Keyboard = t.input.Keyboard
	}
	if ready := t.readyLocked(); ready != "" {
		i.Readiness = t.input.Readiness
	}
	if s.Meta.Adopted != "" {
		i.Adopted = &vocab.Adopted{From: s.Meta.Adopted, Program: s.Meta.Adopted, Exact: !s.Meta.Picture}
	}
	i.NoPorts = t.remote() && !t.creator.ports
	for _, p := range t.openPortsLocked() {
		i.LentPorts = append(i.LentPorts, p.LentPort)
	}
	if c := t.input.checkout; c != (vocab.Checkout{}) {
		i.Checkout = &c
	}
	if p := t.parked(); p != nil {
		i.KeptUntil, i.Dropped = p.until, p.dropped
	}
	if s.Lifecycle.Exited() {
		i.Exit = &vocab.Exit{Code: -1, Reason: "exited", At: t.exited}
		if s.Lifecycle.ExitCode != nil {
			i.Exit.Code = int(*s.Lifecycle.ExitCode)
		}
	}
	return i
}

// hostMachine is the name of the machine on which server-executed terminals run.
const hostMachine = "host"
