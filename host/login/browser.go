package login

import (
	"crypto/sha256"
	"time"

	"tether/host/rights"
	"tether/internal/change"
)

// Browser names a browser's login without its secrets.
type Browser struct {
	Cookie []byte    `json:"cookie_sha256"`
	Token  []byte    `json:"token_sha256"` // by which it was logged in
	Name   string    `json:"principal,omitempty"`
	Until  time.Time `json:"until"`
}

// Named returns the login of a cookie that was found.
func (s *Table) Named(cookie string) Browser {
	hash := sha256.Sum256([]byte(cookie))
	one, _ := s.browsers.Get(hash)
	return Browser{Cookie: hash[:], Token: one.by.Token[:], Name: one.by.Name, Until: one.until.UTC()}
}

// Of returns the principal of a browser's login; ok is false if the browser has
// logged out, or its token has ended. The end of the login's time is neither: from then
// on only the token counts. A login that another node has just made may not have arrived
// here yet; Of waits for it, for at most half a second.
func (s *Table) Of(b Browser) (p rights.Principal, ok bool) {
	if len(b.Cookie) != sha256.Size || len(b.Token) != sha256.Size {
		return p, false
	}
	switch token := [sha256.Size]byte(b.Token); {
	case time.Now().Before(b.Until):
		p, ok = s.by([sha256.Size]byte(b.Cookie))
	case b.Name == "":
		p, ok = rights.Principal{Role: rights.RoleAdmin}, s.token != noToken && token == s.token
	case s.store != nil:
		p, ok = s.store.Of(token, b.Name)
	}
	return asBrowser(p), ok && p.May(rights.Page)
}

// by returns the principal of the token by which a browser is logged in.
func (s *Table) by(hash [sha256.Size]byte) (p rights.Principal, ok bool) {
	look := func() bool {
		one, there := s.browsers.Get(hash)
		p, ok = one.by, there && one.principal.Life().Err() == nil
		return ok
	}
	if !look() && s.shared != nil {
		change.Soon(func() bool { s.look(); return look() })
	}
	return p, ok
}
