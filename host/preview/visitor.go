package preview

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tether/internal/bounded"
	"tether/internal/jsonspan"
)

// openPath is where a code becomes a cookie. No request for it reaches a dev server.
const openPath = "/.tether/open"

const (
	codeTime   = 90 * time.Second // from the click to the preview; nodes' clocks may differ by a minute
	cookieTime = 30 * 24 * time.Hour
	maxForm    = 8 << 10 // bytes
	maxPath    = 2 << 10
	maxUsed    = 4096 // codes
)

// Used notes which codes were used. It is safe for concurrent use.
type Used interface {
	// Use notes a code by its hash, and reports whether it is used for the first time.
	// Until then it may not be forgotten. An error means that the code does not count.
	Use(code [sha256.Size]byte, until time.Time) (first bool, err error)
}

// usedHere is a Used in memory. Codes of an earlier process are used: their notes are
// gone.
type usedHere struct {
	since time.Time
	all   bounded.Map[[sha256.Size]byte, struct{}]
}

func newUsedHere() *usedHere {
	return &usedHere{since: time.Now(), all: bounded.Map[[sha256.Size]byte, struct{}]{Most: maxUsed}}
}

var errUsedBefore = errors.New("this code is older than the host")

// Use implements Used.
func (u *usedHere) Use(code [sha256.Size]byte, until time.Time) (bool, error) {
	if until.Add(-codeTime).Before(u.since.Truncate(time.Millisecond)) {
		return false, errUsedBefore
	}
	return u.all.Add(code, struct{}{}, until), nil
}

// invitation is what a code says.
type invitation struct {
	Visitor string `json:"visitor"`
	Label   string `json:"label"`
	Origin  string `json:"origin"` // of the page that has asked for it, which alone may bring it
	Path    string `json:"path"`   // where the preview begins
	Until   int64  `json:"until"`  // Unix time in ms
	Nonce   string `json:"nonce"`
}

// Invite returns a code that lets the visitor's browser in at a preview: a page at origin
// posts it as the field code of a form to target, within a minute, once. visitor is
// what Find gets: letters, digits, - and _. A path that is none begins at the top.
func (p *Previews) Invite(visitor, label, origin, path string) (target, code string) {
	i := invitation{visitor, label, origin, pathOr(path), time.Now().Add(codeTime).UnixMilli(), rand.Text()}
	said, _ := json.Marshal(i) // has nothing that cannot be encoded
	body := base64.RawURLEncoding.EncodeToString(said)
	return p.URL(label) + openPath, body + "." + base64.RawURLEncoding.EncodeToString(p.sign("code", body))
}

// pathOr returns a path with its query if it leads to the same host, else the top.
func pathOr(path string) string {
	u, err := url.Parse(path)
	if err != nil || len(path) > maxPath || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") ||
		strings.ContainsAny(path, "\\\t\r\n") || u.Path == openPath {
		return "/"
	}
	return u.String()
}

var errBadCode = &Problem{Status: http.StatusForbidden, Text: "This way into the preview was used before, or is too old. Click at the terminal again.", Lasts: true}

// open gives a browser its cookie for a code. Only the page that has asked for the code
// can bring it: so nobody leads another person's browser in as themselves.
func (p *Previews) open(w http.ResponseWriter, r *http.Request, label string) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method != http.MethodPost || err != nil || kind != "application/x-www-form-urlencoded" {
		return errBadRequest
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	code := r.PostFormValue("code")
	i, ok := p.invited(code)
	if !ok || i.Label != label {
		return errBadCode
	}
	if r.Header.Get("Origin") != i.Origin || r.Header.Get("Sec-Fetch-Dest") != "document" {
		return errForeign
	}
	first, err := p.opts.Used.Use(sha256.Sum256([]byte(code)), time.UnixMilli(i.Until))
	if err != nil || !first {
		return errBadCode
	}
	if _, err := p.opts.Find(r.Context(), i.Visitor, label); err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{Name: p.cookie(), Value: i.Visitor + "." + p.stamp(i.Visitor, label), Path: "/", MaxAge: int(cookieTime.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: p.opts.Secure})
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", i.Path)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// invited returns what a code says, if it is one of ours and not too old.
func (p *Previews) invited(code string) (i invitation, ok bool) {
	body, mac, ok := strings.Cut(code, ".")
	sum, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if !ok || err != nil || !hmac.Equal(sum, p.sign("code", body)) {
		return i, false
	}
	said, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || jsonspan.Unmarshal(said, &i) != nil {
		return i, false
	}
	return i, time.Now().Before(time.UnixMilli(i.Until))
}

// Prefixes of the names of the host's cookies. None passes between browser and dev
// server.
const (
	plainCookie  = "tether_"
	secureCookie = "__Host-" + plainCookie
)

// cookie is the name of the cookie. Without https there is no __Host-: there its port is
// in it, which cookies do not distinguish.
func (p *Previews) cookie() string {
	if p.opts.Secure {
		return secureCookie + "preview"
	}
	_, port, _ := strings.Cut(p.suffix, ":")
	return plainCookie + "preview_" + port
}

func isOurs(cookie string) bool {
	cookie = strings.ToLower(cookie)
	return strings.HasPrefix(cookie, plainCookie) || strings.HasPrefix(cookie, strings.ToLower(secureCookie))
}

// stamp lets a visitor in at one preview alone.
func (p *Previews) stamp(visitor, label string) string {
	return base64.RawURLEncoding.EncodeToString(p.sign("cookie", label, visitor))
}

// visitor returns who has sent a request, by the cookie.
func (p *Previews) visitor(r *http.Request, label string) (string, bool) {
	for _, c := range r.CookiesNamed(p.cookie()) {
		if visitor, stamp, ok := strings.Cut(c.Value, "."); ok && hmac.Equal([]byte(stamp), []byte(p.stamp(visitor, label))) {
			return visitor, true
		}
	}
	return "", false
}
