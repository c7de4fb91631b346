// Package page is what people see of a host in a browser: the list of terminals, which
// follows by itself, their text, problems and runs, logins, notifications, the list of
// access rights that they may end, and a guest's view of one terminal. It also has the
// table of all doors of a host that are not WebSockets (routes.go).
//
// The package knows no terminals. It asks Terminals for them, which decides who sees
// what; nothing here looks past it.
package page

import (
	"context"
	"crypto/sha256"
	"math"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"tether/agenttools"
	"tether/host/admission"
	"tether/host/login"
	"tether/host/ports"
	"tether/host/preview"
	"tether/host/rights"
	"tether/host/runs"
	"tether/internal/bounded"
)

// Terminals are the terminals of a host. What somebody may not see is answered as if it
// did not exist. Its methods may be called concurrently.
type Terminals interface {
	// Rows returns the whole list of a principal, in the order of the page.
	Rows(p rights.Principal) []Row
	// Follow returns the list of a principal for somebody who wants its changes. The
	// caller must Close it.
	Follow(p rights.Principal) List
	// Find returns a terminal by its id. Its text may be at another node.
	Find(p rights.Principal, id string) (t Terminal, ok bool)
	// Open returns a terminal with its text, for which it may ask another node, and
	// records that the principal looks at it.
	Open(p rights.Principal, id string) (t Terminal, ok bool)
	// Entries adds the entries that the host itself knows, of links and terminals, to
	// those that are kept, and removes those that the principal may not see and end.
	Entries(p rights.Principal, kept []rights.Entry) []rights.Entry
}

// List is somebody's list of terminals that is followed.
type List interface {
	// Since returns what has changed since a version, 0 for all, and the new version.
	// moved is closed when there is another change.
	Since(version int64) (u Update, now int64, moved <-chan struct{})
	Close()
}

// Terminal is one terminal as somebody sees it.
type Terminal interface {
	agenttools.Terminal
	URI() string
	// Snapshot returns the state in the form of AHP, with at most about that many bytes
	// of text; ok is false if the terminal is not seen any more.
	Snapshot(most int) (state []byte, ok bool)
	// Shared returns the terminal for all who see as much of its output, and their key.
	// It stays usable when one of them may not see it any more.
	Shared() (t agenttools.Terminal, key string)
}

// Guests are the guests of links by which a terminal was shared.
type Guests interface {
	// Admit lets in a guest who shows the secret of a link, by its hash; before is a
	// token that the guest has already.
	Admit(id string, secret [sha256.Size]byte, before string) (p rights.Principal, token string, ok bool)
	// Await waits a moment for a link that another node may have just made.
	Await(id string)
	// Guest returns whose a guest's token is, by its hash.
	Guest(hash [sha256.Size]byte) (p rights.Principal, ok bool)
	// End ends a link and reports whether there was one.
	End(id string) bool
}

// Options configure a Page. Those without a comment that says otherwise are required.
type Options struct {
	Checks    *admission.Checks
	Logins    *login.Table
	Terminals Terminals
	Guests    Guests // nil: there are no links
	// Doors are the doors beside the page.
	Doors Doors
	// Register has further entries that people see and end; nil means only browsers'
	// logins and what Terminals adds. Pushes notifies browsers; nil means that none are.
	// Provider is where people can log in without a token; nil means nowhere.
	Register rights.Register
	Pushes   Pushes
	Provider *LoginProvider
	// Previews shows lent ports of Ports in browsers, at names below its Domain. Without
	// a Domain there are none, and NoPreviews says why. Find and Note are the Page's own.
	// While the host is Ending, none is served.
	Previews   preview.Options
	NoPreviews string
	Ending     func() bool
	Ports      *ports.Ports
	// Scripts says that the page was built with everything that its scripts need; if not,
	// it is the plain page.
	Scripts bool
	// StallTime is how long a browser may read nothing of what it is sent.
	StallTime time.Duration
	// Done is closed when the host closes.
	Done <-chan struct{}

	// Gate decides whether this node serves a request at all, and until when.
	Gate *admission.Gate
	// Ask counts a request that may take long, until done is called; ok is false if its
	// principal has as many as it may.
	Ask func(p rights.Principal) (done func(), ok bool)
	// Send waits for memory for an answer of up to that many bytes, and returns for how
	// many there is room, until done is called.
	Send func(ctx context.Context, p rights.Principal, bytes int64) (room int, done func(), err error)
	Runs *runs.Runs
	// Audit records what a principal does; by is the zero value if nobody is known.
	Audit func(kind string, r *http.Request, by rights.Principal, ev rights.AuditEvent)
	// Bug logs a panic that output has caused.
	Bug func(tool string, stack []byte)
	Log zerolog.Logger
}

// LoginProvider is a way to log in that the login page offers.
type LoginProvider struct {
	Name string // as people know it, such as its domain
	Path string // of a page at this host that logs people in, by Page.LogIn
}

// maxRenders is how many terminals are rendered as text at a time: each may take some MB
// for a moment; others wait.
const maxRenders = 4

// Page serves people. Its methods may be called concurrently.
type Page struct {
	opts   Options           // set once
	checks *admission.Checks // set once
	logins *login.Table      // set once
	mux    *http.ServeMux    // set once; see Handle

	previews *preview.Previews // nil without; set once

	matching *agenttools.Matching          // problems
	renders  bounded.Slots                 // of downloads that render a terminal
	seen     bounded.Map[string, struct{}] // what was recorded once, as the page asks repeatedly
}

// New returns a page that serves. Close it.
func New(o Options) *Page {
	pg := &Page{opts: o, checks: o.Checks, logins: o.Logins, mux: http.NewServeMux(), matching: agenttools.NewMatching(nil, o.Bug), renders: bounded.Slots{All: maxRenders}}
	pg.openPreviews()
	pg.route()
	return pg
}

// Close ends what the page does in the background.
func (pg *Page) Close() { pg.matching.Close() }

// first reports whether what is recorded for the first time.
func (pg *Page) first(what string) bool {
	return pg.seen.Add(what, struct{}{}, time.Now().Add(math.MaxInt64))
}

var (
	errNoFile     = &admission.Refusal{Status: http.StatusNotFound, Text: "no such file", Quiet: true}
	errNoTerminal = &admission.Refusal{Status: http.StatusNotFound, Text: "no such terminal", Quiet: true}
	errNoGuests   = &admission.Refusal{Status: http.StatusForbidden, Text: "guests see their terminal alone", Quiet: true}
)
