// Package login knows the browsers that are logged in at a host, and makes the links that
// log one in. Of nodes that share their logins, each admits and ends those of the others.
package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/host/rights"
	"tether/internal/bounded"
	"tether/internal/change"
)

const (
	// Time is how long a browser stays logged in.
	Time        = 12 * time.Hour
	launchTime  = 10 * time.Minute // how long a login link works
	maxLaunches = 256
	maxLogins   = 4096
)

// Options configure a Table.
type Options struct {
	// Store keeps the logins for the next host; nil: nothing outlives this one.
	Store rights.Logins
	// Shared is Store if other nodes share it, else nil.
	Shared rights.SharedLogins
	// Token is the host's own token, "" if there is none.
	Token string
	Log   zerolog.Logger
}

// Table has the logged-in browsers and the links that log a browser in. It stores only
// hashes. Its methods may be called concurrently.
type Table struct {
	store  rights.Logins       // set once; nil: nothing outlives the host
	shared rights.SharedLogins // store, if other nodes share it, else nil
	token  [sha256.Size]byte   // hash of the host's own token; noToken if there is none
	log    zerolog.Logger
	work   sync.WaitGroup // logins that are being dropped

	looking  sync.Mutex                                       // held while shared is read
	launches bounded.Map[[sha256.Size]byte, rights.Principal] // whom links log in, by the hashes of their codes
	mu       sync.Mutex
	browsers bounded.Map[[sha256.Size]byte, login]
	dropped  map[[sha256.Size]byte]bool // ended ones that shared may still have: look must not add them again; nil without shared
	closed   bool
}

// noToken stands for the hash of a token that does not exist.
var noToken [sha256.Size]byte

// New returns a table without logins. Call Restore, and Close at the end.
func New(o Options) *Table {
	s := &Table{store: o.Store, shared: o.Shared, log: o.Log, launches: bounded.Map[[sha256.Size]byte, rights.Principal]{Most: maxLaunches}, browsers: bounded.Map[[sha256.Size]byte, login]{Most: maxLogins}}
	if o.Token != "" {
		s.token = sha256.Sum256([]byte(o.Token))
	}
	return s
}

// login is a logged-in browser.
type login struct {
	principal rights.Principal // with a browser's rights
	by        rights.Principal // that of the token
	until     time.Time
	end       context.CancelCauseFunc // ends the browser's connections
	kept      bool                    // other nodes know it and may end it
	proof     rights.Proof
}

// Reasons for the end of a browser's connections.
var (
	errLoggedOut = errors.New("the browser was logged out")
	errLoginOver = errors.New("the browser has to log in again")
)

// forget removes a browser, if it is there, and ends its connections.
func (s *Table) forget(hash [sha256.Size]byte, why error) {
	if one, ok := s.browsers.Take(hash); ok {
		one.end(why)
	}
}

// Launch returns the code of a link that logs a browser in as p, once, within ten
// minutes.
func (s *Table) Launch(p rights.Principal) string {
	if p.Name == "" && s.token != noToken {
		p.Token = s.token
	}
	code := rand.Text() // 128 random bits
	if s.shared != nil {
		kept, err := s.shared.KeepLink(rights.Login{Cookie: sha256.Sum256([]byte(code)), Token: p.Token, Principal: p, Until: time.Now().Add(launchTime)})
		if err != nil {
			s.log.Error().Err(err).Msg("a link is not kept: it works at this node alone")
		}
		if kept {
			return code
		}
	}
	s.launches.Put(sha256.Sum256([]byte(code)), p, time.Now().Add(launchTime))
	return code
}

// Follow uses up a code and returns the principal for whom it was made.
func (s *Table) Follow(code string) (rights.Principal, bool) {
	hash := sha256.Sum256([]byte(code))
	if p, ok := s.launches.Take(hash); ok || s.shared == nil {
		return p, ok && p.Life().Err() == nil
	}
	link, ok, err := s.shared.UseLink(hash)
	if err != nil {
		s.log.Error().Err(err).Msg("a link cannot be used")
	}
	p := link.Principal
	p.Token = link.Token
	return p, ok && p.May(rights.Page)
}

// Login returns the cookie of a browser that is logged in as p from now on. Its
// connections end when it is logged out, at the latest after Time. It returns when
// the login is stored for the next host.
func (s *Table) Login(p rights.Principal, proof rights.Proof) string {
	cookie := rand.Text()
	one := rights.Login{Cookie: sha256.Sum256([]byte(cookie)), Token: p.Token, Principal: p, Until: time.Now().Add(Time), Proof: proof}
	s.let(one, false)
	if s.store != nil {
		if err := s.store.Keep(one); err != nil {
			s.log.Error().Err(err).Msg("a browser's login was not kept: it ends with this host")
		}
		if s.shared != nil {
			s.look() // records whether it is stored, so that another node may end it
		}
	}
	return cookie
}

// Restore admits the browsers that were logged in at the former host.
func (s *Table) Restore() {
	if s.store == nil {
		return
	}
	for _, one := range s.store.Kept() {
		if one.Principal.May(rights.Page) {
			one.Principal.Token = one.Token
			s.let(one, s.shared != nil)
		}
	}
}

// FollowShared admits browsers that have logged in at other nodes, and ends those that
// were logged out there.
func (s *Table) FollowShared() {
	s.look()
	s.dropAgain()
}

// dropAgain drops the logins that could not be dropped when they ended.
func (s *Table) dropAgain() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.dropped))
	s.mu.Unlock()
	for _, hash := range all {
		if s.store.Drop(hash) != nil {
			return // it was logged, and will work once NATS is reached
		}
	}
}

// look applies what other nodes have changed.
func (s *Table) look() {
	s.looking.Lock()
	defer s.looking.Unlock()
	s.mu.Lock()
	waits := len(s.dropped) > 0
	s.mu.Unlock()
	if !s.shared.Moved() && !waits {
		return
	}
	there := map[[sha256.Size]byte]bool{}
	var fresh []rights.Login
	kept := s.shared.Kept()
	s.mu.Lock()
	for _, one := range kept {
		there[one.Cookie] = true
		if in, ok := s.browsers.Get(one.Cookie); ok {
			in.kept = true
			s.browsers.Put(one.Cookie, in, in.until)
		} else if one.Principal.May(rights.Page) && !s.dropped[one.Cookie] {
			fresh = append(fresh, one)
		}
	}
	for cookie, one := range s.browsers.All() {
		if one.kept && !there[cookie] {
			s.forget(cookie, errLoggedOut)
		}
	}
	maps.DeleteFunc(s.dropped, func(cookie [sha256.Size]byte, _ bool) bool { return !there[cookie] })
	s.mu.Unlock()
	for _, one := range fresh {
		one.Principal.Token = one.Token
		s.let(one, true)
	}
}

// asBrowser returns a principal with the rights of a browser: those of an observer, even
// for an administrator. The page needs no more, and browsers send a cookie to every port
// of a machine, on one of which a program that an agent has started may listen.
func asBrowser(p rights.Principal) rights.Principal {
	p.Steward = p.Administers()
	p.Role = rights.RoleObserver
	return p
}

// let admits a browser.
func (s *Table) let(one rights.Login, kept bool) {
	in := login{principal: asBrowser(one.Principal), by: one.Principal, until: one.Until, kept: kept, proof: one.Proof}
	live, end := context.WithCancelCause(in.principal.Life())
	timed, stop := context.WithDeadlineCause(live, one.Until, errLoginOver)
	in.principal.Live = timed
	in.end = func(why error) { end(why); stop() }
	s.mu.Lock()
	if oldest, full := s.browsers.Put(one.Cookie, in, one.Until); full {
		oldest.end(errLoginOver)
	}
	s.mu.Unlock()
	context.AfterFunc(timed, func() { s.drop(one.Cookie) })
}

// Find returns the principal of a cookie. A cookie that another node has just made may
// not have arrived here yet; Find waits a little for it.
func (s *Table) Find(cookie string) (rights.Principal, bool) {
	return s.FindHash(sha256.Sum256([]byte(cookie)))
}

// FindHash is Find for the hash of a cookie.
func (s *Table) FindHash(hash [sha256.Size]byte) (rights.Principal, bool) {
	p, ok := s.known(hash)
	if !ok && s.shared != nil {
		change.Soon(func() bool { s.look(); p, ok = s.known(hash); return ok })
	}
	return p, ok
}

func (s *Table) known(hash [sha256.Size]byte) (rights.Principal, bool) {
	one, ok := s.browsers.Get(hash)
	return one.principal, ok && one.principal.Life().Err() == nil
}

// Logout logs a browser out. It returns when the next host does not know the cookie any
// more either.
func (s *Table) Logout(cookie string) {
	hash := sha256.Sum256([]byte(cookie))
	s.mu.Lock()
	one, known := s.browsers.Get(hash)
	s.noteDroppedLocked(hash, one)
	s.forget(hash, errLoggedOut)
	s.mu.Unlock()
	if known || s.shared != nil { // another node may have just made it
		s.drop(hash)
	}
}

// noteDroppedLocked records that a login has ended which other nodes may still have.
func (s *Table) noteDroppedLocked(hash [sha256.Size]byte, one login) {
	if !one.kept {
		return
	}
	if s.dropped == nil {
		s.dropped = map[[sha256.Size]byte]bool{}
	}
	s.dropped[hash] = true
}

// drop removes an ended login, from the file, too.
func (s *Table) drop(hash [sha256.Size]byte) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	one, _ := s.browsers.Take(hash)
	s.noteDroppedLocked(hash, one)
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()
	if s.store == nil {
		return
	}
	if err := s.store.Drop(hash); err != nil {
		s.log.Error().Err(err).Msg("a browser's login that is over is still in the file")
	}
}

// Close waits until no login is being dropped. Stored logins stay for the next host.
func (s *Table) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
}
