// Package terminals has the terminals of a host, who lends them, who sees them, and who
// watches them: those of machines that are connected here, away, or at another node of
// the host, and the shells of the host itself. It decides nothing about what clients may
// send, and knows no connection but as a [Link] of its owner.
//
// A [Book] has all of them. It has no lock of its own: the lock of its owner, the host,
// guards the book and everything in it. Functions are called with the lock, but for
// those whose comment says that they take it, and for what agents and pages use: [View],
// [Seen] and their readers, and the methods by which other nodes ask and tell
// ([Book.Feed]).
package terminals

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/internal/bounded"
	"tether/record"
)

// Settings of a Book.
type Settings struct {
	Lock    *sync.Mutex     // the owner's, which guards the book
	Context context.Context // ends when the host closes
	Go      func(func())    // runs a function on a goroutine for which the host waits
	Order   *channel.Order
	Names   *rights.Names // how long the terminals of a name may stay parked
	People  rights.People // nil: everybody sees everything
	Log     zerolog.Logger
	Audit   func(kind string, p rights.Principal, ev rights.AuditEvent) // called without the lock

	Grace, Park                  time.Duration // see the host's options of these names
	Scrollback                   int           // bytes of each terminal
	MaxMemory                    int64         // bytes of all terminals together
	MaxConnections, MaxTerminals int

	Nodes   bool                  // the host is one of several nodes
	Wanted  func(uri string)      // somebody follows the terminal of another node; called with the lock, does not block
	Taken   func(uri string) bool // whether something else than a terminal has that URI; called with the lock
	Renewed func()                // everybody sees something else, and has to connect again; called with the lock
}

// Book has the terminals of a host, and the clients that lend them. The lock of its owner
// guards it and everything in it.
type Book struct {
	opts Settings // set once

	mu        *sync.Mutex // the owner's
	log       zerolog.Logger
	closed    bool
	envelopes *channel.Order
	Root      *channel.Channel
	ByURI     map[string]*Terminal // by URI
	Listed    []*Terminal          // the catalogue: by creation
	Parked    []*Terminal          // not in the catalogue: terminals of machines that are away, the longest first
	ByID      map[string]*Terminal // of both, by their short names
	news      listing
	Clients   map[string]*Client // by clientId
	perName   map[string]int     // terminals in the catalogue, by the names of principals
	creates   bounded.Rates      // limits new terminals of machines, by name
	Memory    *record.Budget     // what the recorded text and the logs of all terminals take together

	looking    sync.Mutex        // held while People is read
	Roster     *rights.Directory // the known people; never nil
	Sight      int64             // counts changes of visibility; a reader that has seen another number checks its right again
	holds      map[*Hold]struct{}
	listers    map[listerKey]*Lister
	byOwner    map[string][]*Lister // the same, by the ids of owners
	round      int64                // of reindex
	rowVersion int64                // of the newest change of any row

	former  bounded.Map[string, owner] // owners of removed terminals, by their URIs, of the newest of them
	forgot  time.Time                  // when forget last looked
	nodes   nodeBook
	Resyncs int64 // how often the text of a mirror was reset
}

// NewBook returns an empty book.
func NewBook(o Settings) *Book {
	b := &Book{
		opts: o, mu: o.Lock, log: o.Log, envelopes: o.Order, Root: o.Order.NewChannel(ahp.RootURI),
		rowVersion: 1, // 0 means that a client has no version yet
		creates:    bounded.Rates{Burst: max(createBurst, o.MaxTerminals), Every: time.Second / createRate},
		ByURI:      make(map[string]*Terminal),
		ByID:       make(map[string]*Terminal),
		Clients:    make(map[string]*Client),
		perName:    make(map[string]int),
		Memory:     record.NewBudget(o.MaxMemory, o.MaxMemory/8),
		forgot:     time.Now(),
		Roster:     rights.NewDirectory(&rights.Roster{}), holds: make(map[*Hold]struct{}), listers: make(map[listerKey]*Lister), byOwner: make(map[string][]*Lister),
		news: listing{stale: make(map[*Lister]struct{})},
	}
	b.Root.Whole = true
	return b
}

// Close ends everything that the book does by itself.
func (b *Book) Close() {
	b.closed = true
	for t := range b.Every() {
		t.stopTimers()
	}
}

// After calls do with the lock after d, unless the timer that it puts at t is
// stopped, replaced or forgotten before.
func (b *Book) After(t **time.Timer, d time.Duration, do func()) {
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if *t == timer && !b.closed {
			do()
		}
	})
	*t = timer
}

// CloseReplaced is the WebSocket close code of a connection that is replaced by another
// one of its client.
const CloseReplaced = 4000

// Conn is a connection, as far as terminals use it.
type Conn interface {
	sessions.Conn
	Close(code int, reason string) // ends it
	Tell(channel.Piece)            // queues an envelope for it alone
}

// Link is a connection, with what the terminals have of it.
type Link struct {
	Conn
	Who    *rights.Principal // set once
	Out    *channel.Outbox   // set once
	Hold   *Hold             // of the principal's view of the catalogue; set when the connection is opened
	Client *Client           // nil before the handshake
	Taken  bool              // by this connection, the node has become the owner of the client's terminals

	due notices[[]*Terminal] // terminals whose notices are to be sent here
}

// Subscriber is whoever has subscribed to a terminal: the Of of its channel's
// subscriptions.
type Subscriber interface {
	Link() *Link
	Since() time.Time // when it subscribed
	// Withdraw ends the subscription because its subscriber does not see the terminal any
	// more.
	Withdraw()
}

// Sees reports whether c sees t.
func (c *Link) Sees(t *Terminal) bool {
	if c.Client != nil && t.Creator == c.Client {
		return true
	}
	_, ok := c.Hold.Sees(t.Subject, t.book.Roster)
	return ok
}

// From returns the position from which on c sees the text of t.
func (c *Link) From(t *Terminal) int64 {
	from, _ := c.Hold.Sees(t.Subject, t.book.Roster)
	return from
}
