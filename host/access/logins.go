package access

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"tether/host/rights"
	"tether/internal/change"
)

const (
	loginsVersion = 1
	// maxKeptLogins bounds the file to less than secret.ReadFile accepts. Beyond it, the
	// oldest logins are dropped.
	maxKeptLogins = 2048
	maxKeptLinks  = 256
)

// Logins keeps browsers' logins in a file, so that a restart of the host logs nobody out.
// It stores only hashes of cookies and tokens. It implements rights.SharedLogins, and is
// safe for concurrent use, also with other hosts that use the same file.
type Logins struct {
	doc    Doc[loginsFile]
	shared bool              // other nodes change the document too; set once
	tokens *Tokens           // set once
	own    [sha256.Size]byte // hash of the host's own token; set once

	sessions func([sha256.Size]byte) (rights.Principal, bool) // see Sessions; set before use; nil: none
}

// keptLogin is a record of the file.
type keptLogin struct {
	Cookie []byte       `json:"cookie_sha256"`
	Token  []byte       `json:"token_sha256"`
	Name   string       `json:"principal,omitempty"` // empty: the host's own token
	Link   bool         `json:"link,omitempty"`      // Cookie is the code of a link that logs a browser in, once
	Until  time.Time    `json:"until"`
	Proof  rights.Proof `json:"proof,omitempty"`
}

// loginsFile is the content of the file.
type loginsFile struct {
	Version int         `json:"version"`
	Logins  []keptLogin `json:"logins"`
}

// OpenLogins keeps logins in a document, which may be missing. It keeps logins by the
// tokens in tokens, and by the host's own token, unless own is empty because that token
// differs after each start. If the document cannot be used, onError is called, and a file
// is renamed. All nodes of a cluster change a document that is not a file; there, a login
// by the host's own token counts at all nodes with the same token.
func OpenLogins(at Place, tokens *Tokens, own string, onError func(error)) *Logins {
	l := &Logins{shared: !onDisk(at), tokens: tokens, doc: Doc[loginsFile]{At: at, What: "logins", Version: loginsVersion,
		Empty: loginsFile{Version: loginsVersion}, Check: (*loginsFile).check, Lost: onError, Effect: ", and browsers have to log in again"}}
	if own != "" {
		l.own = sha256.Sum256([]byte(own))
	}
	return l
}

// Sessions makes l also keep logins by tokens that are not in the file: of finds their
// principal by the token's hash. It must be called before l is used.
func (l *Logins) Sessions(of func([sha256.Size]byte) (rights.Principal, bool)) { l.sessions = of }

// Kept implements rights.Logins. It also removes expired logins from the file.
func (l *Logins) Kept() []rights.Login {
	all := l.kept()
	l.tokens.look() // first: of a token and its login that another node has made, the token is older
	var kept []rights.Login
	for _, k := range all {
		if p, ok := l.principal(&k); ok && !k.Link {
			kept = append(kept, k.login(p))
		}
	}
	if len(kept) < len(all) && !l.shared {
		if err := l.change(func(all []keptLogin) []keptLogin { return all }); err != nil {
			l.doc.Lost(err)
		}
	}
	return kept
}

// Keep implements rights.Logins.
func (l *Logins) Keep(one rights.Login) error {
	k := keptLogin{Cookie: one.Cookie[:], Token: one.Token[:], Name: one.Principal.Name, Until: one.Until.UTC(), Proof: one.Proof}
	if _, ok := l.principal(&k); !ok {
		return nil // its token ends with this run of the host, or has ended already
	}
	return l.change(func(all []keptLogin) []keptLogin { return append(all, k) })
}

func (k *keptLogin) login(p rights.Principal) rights.Login {
	return rights.Login{Cookie: [sha256.Size]byte(k.Cookie), Token: [sha256.Size]byte(k.Token), Principal: p, Until: k.Until, Proof: k.Proof}
}

// Moved implements rights.SharedLogins.
func (l *Logins) Moved() bool { return l.doc.Moved() }

// KeepLink implements rights.SharedLogins.
func (l *Logins) KeepLink(one rights.Login) (kept bool, err error) {
	k := keptLogin{Cookie: one.Cookie[:], Token: one.Token[:], Name: one.Principal.Name, Until: one.Until.UTC(), Link: true}
	if _, ok := l.principal(&k); !ok {
		return false, nil
	}
	err = l.change(func(all []keptLogin) []keptLogin {
		links := 0
		for i := len(all) - 1; i >= 0; i-- { // drop the oldest beyond the bound
			if all[i].Link {
				if links++; links >= maxKeptLinks {
					all = slices.Delete(all, i, i+1)
				}
			}
		}
		return append(all, k)
	})
	return err == nil, err
}

// UseLink implements rights.SharedLogins.
func (l *Logins) UseLink(code [sha256.Size]byte) (one rights.Login, ok bool, err error) {
	is := func(k keptLogin) bool { return k.Link && bytes.Equal(k.Cookie, code[:]) }
	if !change.Soon(func() bool { return slices.ContainsFunc(l.kept(), is) }) { // another node may have just made it
		return one, false, nil
	}
	l.tokens.look()
	err = l.change(func(all []keptLogin) []keptLogin {
		ok = false
		return slices.DeleteFunc(all, func(k keptLogin) bool {
			if !is(k) {
				return false
			}
			var p rights.Principal
			p, ok = l.principal(&k)
			one = k.login(p)
			return true
		})
	})
	return one, ok && err == nil, err
}

// Drop implements rights.Logins.
func (l *Logins) Drop(cookie [sha256.Size]byte) error {
	return l.change(func(all []keptLogin) []keptLogin {
		return slices.DeleteFunc(all, func(k keptLogin) bool { return bytes.Equal(k.Cookie, cookie[:]) })
	})
}

// principal returns the principal of a login; ok is false if the login or its token has
// expired or was ended.
func (l *Logins) principal(k *keptLogin) (p rights.Principal, ok bool) {
	switch {
	case !time.Now().Before(k.Until):
		return p, false
	case k.Name == "":
		return rights.Principal{Role: rights.RoleAdmin}, l.own != [sha256.Size]byte{} && bytes.Equal(k.Token, l.own[:])
	}
	return l.Of([sha256.Size]byte(k.Token), k.Name)
}

// Of implements rights.Logins.
func (l *Logins) Of(token [sha256.Size]byte, name string) (p rights.Principal, ok bool) {
	l.tokens.mu.Lock()
	p, ok = l.tokens.ofHashLocked(token[:])
	l.tokens.mu.Unlock()
	if !ok && l.sessions != nil {
		p, ok = l.sessions(token)
	}
	return p, ok && p.Name == name
}

// change applies f to the logins, removes expired ones, and writes the file if it
// differs.
func (l *Logins) change(f func([]keptLogin) []keptLogin) error {
	return l.doc.Change(func(file *loginsFile) error {
		all := slices.DeleteFunc(f(slices.Clone(file.Logins)), l.over)
		all = all[max(0, len(all)-maxKeptLogins):]
		if slices.EqualFunc(all, file.Logins, func(a, b keptLogin) bool { return bytes.Equal(a.Cookie, b.Cookie) }) {
			return errSame
		}
		file.Logins = all
		return nil
	})
}

// over reports whether a login is to be removed from the document. Of the logins that
// nodes share, only expired ones are: this node may not have received a login's token
// yet, or the login may be by another node's own token. Until then each node ignores the
// logins whose tokens it does not know.
func (l *Logins) over(k keptLogin) bool {
	if l.shared {
		return !time.Now().Before(k.Until)
	}
	_, ok := l.principal(&k)
	return !ok
}

// kept returns the records of the document.
func (l *Logins) kept() []keptLogin {
	f, err := l.doc.Now()
	if err != nil {
		l.doc.Lost(err)
		return nil
	}
	return f.Logins
}

func (f *loginsFile) check() error {
	if slices.ContainsFunc(f.Logins, func(k keptLogin) bool {
		return len(k.Cookie) != sha256.Size || len(k.Token) != sha256.Size || k.Name != "" && checkName(k.Name) != nil
	}) {
		return errors.New("it has an entry that is not a login")
	}
	return nil
}
