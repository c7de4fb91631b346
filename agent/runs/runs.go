package runs

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"tether/agent/history"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/change"
	"tether/internal/checkout"
	"tether/problems"
)

// Options are what Runs needs. History and Access are required.
type Options struct {
	History *history.History
	// Access is the pool as the person sees it.
	Access term.Access
	// Never reports whether a rule forbids lending to the host from one of the
	// directories; with host "" whether it does for all hosts. While settled is not nil,
	// the rules' file systems have not answered yet: it is closed when they have. Nil
	// means that no directory is forbidden.
	Never func(host string, dirs ...string) (never bool, settled <-chan struct{})
	// HostID returns what names the pairing with a host, for as long as it lasts; "" if
	// there is none. What was lent to a host is not for a later one of the same name. Nil
	// means the host's name.
	HostID func(host string) string
	// Checkouts, if not nil, finds the git work trees in which runs start.
	Checkouts *checkout.Finder
	// Matchers find problems; nil means those of known tools.
	Matchers *problems.Set
	Logger   *zerolog.Logger // nil: silence
}

// Runs is the history of the terminals' runs. It is safe for concurrent use.
type Runs struct {
	opts     Options
	recorder *recorder
	changes  changes
	verdicts verdicts
	trees    trees
}

// Open returns the runs of a history. Record adds to it.
func Open(o Options) *Runs {
	if o.Never == nil {
		o.Never = func(string, ...string) (bool, <-chan struct{}) { return false, nil }
	}
	if o.HostID == nil {
		o.HostID = func(host string) string { return host }
	}
	if o.Logger == nil {
		nop := zerolog.Nop()
		o.Logger = &nop
	}
	r := &Runs{opts: o, trees: trees{finder: o.Checkouts}}
	r.recorder = newRecorder(r)
	return r
}

// matchers returns what problems are found with.
func (r *Runs) matchers() *problems.Set {
	if r.opts.Matchers != nil {
		return r.opts.Matchers
	}
	return problems.Builtin()
}

// History returns the files, for the person.
func (r *Runs) History() *history.History { return r.opts.History }

// Asker is who asks for runs.
type Asker struct {
	Actor term.Actor
	// Host is the paired host at which an agent or a person asks, "" here.
	Host string
	// Names are the words of grants at the host that cover the asker there. Owner says
	// that it is the person to whom this machine belongs there, or an agent of theirs.
	Names []string
	Owner bool
}

// As returns the runs that the asker may see. It waits, for a second at most, until what
// was printed before is among them.
func (r *Runs) As(a Asker) View {
	if a.Host == "" {
		a.Host = a.Actor.At()
	}
	r.recorder.catchUp()
	return View{r, a}
}

// View is the history as one asker sees it.
type View struct {
	runs  *Runs
	asker Asker
}

// List returns the runs that match, the one that began last first.
func (v View) List(q history.Query) iter.Seq[history.Run] {
	return func(yield func(history.Run) bool) {
		look := v.look()
		for r := range v.runs.opts.History.List(q) {
			if shown, _, ok := look.sees(r); ok && !yield(shown) {
				return
			}
		}
	}
}

// Run returns the record of a run, or agenttools.ErrNotFound.
func (v View) Run(id string) (history.Run, error) {
	r, _, err := v.find(id)
	return r, err
}

// find returns the record of a run, and the ranges of its text that the asker may see.
func (v View) find(id string) (history.Run, []history.Span, error) {
	r, err := v.runs.opts.History.Run(id)
	if errors.Is(err, history.ErrUnknownRun) {
		return r, nil, agenttools.ErrNotFound
	}
	if err != nil {
		return r, nil, err
	}
	shown, allowed, ok := v.look().sees(r)
	if !ok {
		return history.Run{}, nil, agenttools.ErrNotFound
	}
	return shown, allowed, nil
}

// Changed waits until the runs have another version than since, and returns it: one has
// begun, or there is more to say about one. 0 is never current.
func (v View) Changed(ctx context.Context, since uint64) (uint64, error) {
	return change.Await(ctx, since, v.runs.changes.version)
}

// changes counts the versions of the runs.
type changes struct {
	mu    sync.Mutex
	count uint64
	watch change.Signal
}

func (c *changes) raise() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.watch.Raise()
}

func (c *changes) version() (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count + 1, c.watch.Next()
}

// look is one asking: it remembers what it has read about terminals.
type look struct {
	View
	lent map[string][]history.Span // by terminal
}

func (v View) look() *look { return &look{v, map[string][]history.Span{}} }

// sees returns a run as the asker sees it, and which ranges of its text; ok is false if
// the asker must not know of it.
func (l *look) sees(r history.Run) (shown history.Run, allowed []history.Span, ok bool) {
	whole := history.Span{From: r.Start, To: r.End}
	if r.End < 0 {
		whole.To = maxOffset
	}
	switch a := l.asker; {
	case a.Host != "":
		return l.seesLent(r, whole)
	case a.Actor == term.User:
		return r, []history.Span{whole}, true
	case a.Actor.Role == term.RoleAgent && (r.Owner == a.Actor.String() || r.Owner == term.User.String()):
		return r, []history.Span{whole}, true
	}
	return history.Run{}, nil, false
}

// seesLent is sees for somebody at a host.
func (l *look) seesLent(r history.Run, whole history.Span) (history.Run, []history.Span, bool) {
	spans, known := l.lent[r.Terminal]
	if !known {
		spans = l.runs.lentSpans(r.Terminal, l.asker)
		l.lent[r.Terminal] = spans
	}
	allowed := within(spans, whole)
	if len(allowed) == 0 && (whole.To > whole.From || !covers(spans, whole.From)) {
		return history.Run{}, nil, false
	}
	if len(allowed) != 1 || allowed[0] != whole {
		r.Problems = history.Problems{} // they tell of text that was not lent
	}
	if c := r.Checkout; c != nil && l.runs.never(l.asker.Host, c.Worktree, c.Repository) {
		r.Checkout = nil
	}
	return r, allowed, true
}

// never reports whether a rule forbids one of the directories, or does not say so in
// time.
func (r *Runs) never(host string, dirs ...string) bool {
	never, settled := r.opts.Never(host, dirs...)
	return never || settled != nil
}

// ownerOf is the owner in a run's record.
func ownerOf(a term.Actor) string { return a.String() }

// argv is a command as one line.
func argv(command []string) string { return strings.Join(command, " ") }
