package terminals

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
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

// View is a principal's view of all terminals. With p nil it is the host's own,
// which sees everything. It implements only agenttools.Terminals, so nobody can change
// anything through it.
type View struct {
	book *Book
	p    *rights.Principal
}

// View returns what a principal sees of the terminals, or the host's own view for nil.
func (b *Book) View(p *rights.Principal) View { return View{b, p} }

// from decides whether the principal sees t, and from which position of its text on.
func (c View) from(t *Terminal) (from int64, ok bool) {
	if c.p == nil {
		return 0, true
	}
	v := c.book.Roster.Viewer(*c.p)
	return v.Sees(t.Subject, c.book.Roster)
}

// List implements agenttools.Terminals.
func (c View) List() []agenttools.Info {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	all := make([]agenttools.Info, 0, len(c.book.Listed))
	for t := range c.book.Every() {
		if from, ok := c.from(t); ok {
			all = append(all, t.info(from))
		}
	}
	return all
}

// Open implements agenttools.Terminals.
func (c View) Open(id string) (agenttools.Terminal, error) {
	at, ok := c.Find(id)
	if !ok {
		return nil, agenttools.ErrNotFound
	}
	c.book.fill(at.t)
	if at, ok = c.Find(id); !ok { // it may have been removed meanwhile, or its text may be at another node now
		return nil, agenttools.ErrNotFound
	}
	return at, nil
}

// Find returns a terminal that the principal sees, without waiting for text of another
// node. It takes the lock.
func (c View) Find(id string) (at Seen, ok bool) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	if t := c.book.ByID[id]; t != nil {
		from, ok := c.from(t)
		return Seen{book: c.book, t: t, p: c.p, from: from}, ok
	}
	return at, false
}

// Changed implements agenttools.Watchable.
func (c View) Changed(ctx context.Context, since uint64) (uint64, error) {
	v := c.book.Roster.Viewer(rights.Principal{Role: rights.RoleAdmin})
	c.book.mu.Lock()
	if c.p != nil {
		v = c.book.Roster.Viewer(*c.p)
	}
	use := c.book.Hold(v)
	c.book.mu.Unlock()
	defer func() {
		c.book.mu.Lock()
		defer c.book.mu.Unlock()
		c.book.LetGo(use)
	}()
	return change.Await(ctx, since, func() (uint64, <-chan struct{}) {
		c.book.mu.Lock()
		defer c.book.mu.Unlock()
		return uint64(use.Lister.book.version+c.book.Sight) + 1, use.Lister.book.moved.Next() // sight: for changes while nobody holds the list
	})
}

// Seen is one terminal as p sees it, or the host itself if p is nil.
type Seen struct {
	book *Book
	t    *Terminal
	p    *rights.Principal
	from int64 // position of the first text that p may see; 0: all
}

// Lender returns the client that lends the terminal, ok false for a shell of the host. It
// takes the lock.
func (l Seen) Lender() (client string, ok bool) {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	return l.t.Creator.id, l.t.Remote()
}

// start is the offset of that text; 0 if it may see all.
func (l Seen) start() int64 {
	if l.from == 0 {
		return 0
	}
	return l.t.Out.OffsetOf(l.from)
}

// Info implements agenttools.Terminal.
func (l Seen) Info() agenttools.Info {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	return l.t.info(l.from)
}

// Commands implements agenttools.Terminal.
func (l Seen) Commands() []vocab.Command {
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	return slices.DeleteFunc(l.t.Out.Commands(), func(c vocab.Command) bool { return c.Start < l.start() })
}

// Read implements agenttools.Terminal.
func (l Seen) Read(from int64) (agenttools.Reader, error) { return l.newReader(from), nil }

// ReadScreen implements agenttools.ScreenTerminal.
func (l Seen) ReadScreen() (agenttools.OldScreen, agenttools.Reader, error) {
	l.book.mu.Lock()
	out := l.t.Out
	behind := out.Behind(out.Oldest())
	from, since := max(out.StartOffset(), out.OffsetOf(behind.Pos)), l.start()
	l.book.mu.Unlock()
	old := behind.Show()
	if l.from > 0 { // the screen may show earlier output
		old, from = agenttools.OldScreen{Cols: old.Cols, Rows: old.Rows}, max(from, since)
	}
	return old, l.newReader(from), nil
}

// IDOf returns a short, stable name for a terminal that fits into URLs and tool calls;
// its URI may contain anything.
func IDOf(uri string) string {
	hash := sha256.Sum256([]byte(uri))
	return "pty-" + strings.ToLower(base32.StdEncoding.EncodeToString(hash[:])[:10])
}

// Machine returns the name of a client's machine: its token's name, else the name
// that it gives itself, else its id.
func (c *Client) Machine() string {
	name := c.Who.Name
	if name == "" {
		name = strings.ReplaceAll(screen.Clean(ahp.CleanTitle(c.Title)), "/", "-")
	}
	if name == "" || len(name) > sessions.MaxMachine {
		name = c.id[:min(len(c.id), 8)]
	}
	return name
}

// info describes t for a viewer who sees its text from the position from on.
func (t *Terminal) info(from int64) agenttools.Info {
	i := t.Describe(from)
	i.Start, i.End = t.Out.StartOffset(), t.Out.EndOffset()
	t.mirrorInfo(&i)
	if from > 0 {
		i.Start = max(i.Start, t.Out.OffsetOf(from))
	}
	return i
}

// Describe is info without the offsets. To find where they begin, all recorded parts
// would have to be examined.
func (t *Terminal) Describe(from int64) agenttools.Info {
	s := t.State
	machine := t.Creator.Machine()
	if !t.Remote() {
		machine = hostMachine
	}
	i := agenttools.Info{ID: t.ID, Cwd: ahp.PathOf(s.Cwd), Owner: agenttools.OwnerUser, Visible: true, CreatedAt: t.Created, Machine: machine,
		Name: machine + "/" + t.Name, Title: s.Title, Cols: int(s.Cols), Rows: int(s.Rows), Detection: s.SupportsCommandDetection}
	i.Cols, i.Rows = cmp.Or(i.Cols, output.DefaultCols), cmp.Or(i.Rows, output.DefaultRows)
	if line, began, ok := t.Out.Running(); ok && (from == 0 || began >= from) {
		i.Running = line
	} else if m := t.Mirror(); m != nil && !m.Fed && from == 0 {
		i.Running = m.running
	}
	if t.IsAway() {
		i.Away, i.AwayWhy = t.away()
	} else {
		i.Keyboard = t.input.Keyboard
	}
	if ready := t.Ready(); ready != "" {
		i.Readiness = t.input.Readiness
	}
	if s.Meta.Adopted != "" {
		i.Adopted = &vocab.Adopted{From: s.Meta.Adopted, Program: s.Meta.Adopted, Exact: !s.Meta.Picture}
	}
	i.NoPorts = t.Remote() && !t.Creator.Ports
	for _, l := range t.State.Meta.Ports {
		if !l.GuestsOnly {
			i.LentPorts = append(i.LentPorts, agenttools.LentPort{Port: int(l.Port), Write: l.Write})
		}
	}
	if c := t.input.checkout; c != (vocab.Checkout{}) {
		i.Checkout = &c
	}
	if p := t.Parked(); p != nil {
		i.KeptUntil, i.Dropped = p.Until, p.Dropped
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

// URI implements page.Terminal.
func (l Seen) URI() string { return l.t.URI }

// Shared implements page.Terminal.
func (l Seen) Shared() (t agenttools.Terminal, key string) {
	if l.from > 0 { // others see more of the output
		return l, fmt.Sprint(l.t.ID, " from ", l.from)
	}
	l.p = nil // the findings stay when this person may not see the terminal any more
	return l, l.t.ID
}

// Snapshot implements page.Terminal.
func (l Seen) Snapshot(most int) (state []byte, ok bool) {
	s, ok := l.snapshot(most)
	if !ok {
		return nil, false
	}
	return s.Append(nil), true
}

// snapshot returns the terminal's present state, with at most about limit bytes of text;
// ok is false if the principal does not see it any more.
func (l Seen) snapshot(limit int) (s Snapshot, ok bool) {
	b, t := l.book, l.t
	b.mu.Lock()
	defer b.mu.Unlock()
	since, ok := View{b, l.p}.from(t)
	if !ok || t.gone() {
		return s, false
	}
	s = Snapshot{URI: t.URI, Seq: b.envelopes.Newest(), Version: ahp.Versions()[0], State: *t.State}
	if s.Text = t.Out.View(min(limit, MaxSnapshots), since); since > t.Out.Base() { // earlier output is hidden from this person
		s.State.Meta.Screen = t.Out.UnknownScreen()
	} else {
		s.Shows = t.Out.Behind(t.Out.Oldest())
	}
	return s, true
}
