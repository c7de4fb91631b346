package host

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"tether/events"
	"tether/host/admission"
	"tether/host/rights"
	"tether/host/webpush"
	"tether/internal/change"
	"tether/internal/jsonspan"
)

// This file serves the part of the page where people choose of what their browser
// notifies them, also when the page is closed.

const (
	pushPath   = "/push" // GET: the host's key, as JSON; POST: asks or changes what a browser gets
	workerPath = "/sw.js"
	maxPush    = 8 << 10 // bytes of a request
	// MaxPushTerminals is how many terminals a browser may choose one by one.
	MaxPushTerminals = 32
)

// PushKinds are the kinds of events of which people are notified. Of exits, commands and
// problems, only failures and new problems count.
func PushKinds() []string {
	return []string{events.AwaitingInput, events.Exited, events.CommandFinished, events.Problems, events.Ready}
}

// PushChoice is of what a browser is notified.
type PushChoice struct {
	All       bool     `json:"all"`       // of all terminals that its person sees
	Terminals []string `json:"terminals"` // or of these, by id
	Kinds     []string `json:"kinds"`     // some of PushKinds
}

// None reports whether the browser is notified of nothing.
func (c *PushChoice) None() bool {
	return len(c.Kinds) == 0 || !c.All && len(c.Terminals) == 0
}

// BrowserLogin names a browser's login without its secrets.
type BrowserLogin struct {
	Cookie []byte    `json:"cookie_sha256"`
	Token  []byte    `json:"token_sha256"` // by which it was logged in
	Name   string    `json:"principal,omitempty"`
	Until  time.Time `json:"until"`
}

// PushBrowser is a logged-in browser that takes notifications.
type PushBrowser struct {
	Login BrowserLogin         `json:"login"`
	To    webpush.Subscription `json:"to"`
}

// Pushes notifies browsers. It is safe for concurrent use.
type Pushes interface {
	// Key is the public key that browsers give to their push service.
	Key() string
	// Choose sets of what a browser is notified; without a choice it returns the present
	// one, and counts as a use of it. A *PushRefused says what is wrong with the request.
	Choose(context.Context, PushBrowser, *PushChoice) (PushChoice, error)
}

// PushRefused says, for the person, why a browser is not notified.
type PushRefused struct{ Why string }

// Error implements error.
func (e *PushRefused) Error() string { return e.Why }

var (
	errNoPush   = &admission.Refusal{Status: http.StatusNotFound, Text: "this host notifies no browsers; its operator can start it with --push", Quiet: true}
	errPushDown = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "the host cannot do this now; try again in a minute", Quiet: true}
)

// pushKey serves GET of pushPath. A host without Pushes answers, too, with an empty key:
// an error would be one in the browser's console.
func (h *Host) pushKey(w http.ResponseWriter, r *http.Request, _ rights.Principal) *admission.Refusal {
	var a struct {
		Key   string   `json:"key"`
		CSRF  string   `json:"csrf"` // for csrfHeader
		Kinds []string `json:"kinds"`
	}
	if cookie, err := r.Cookie(h.checks.LoginCookie(r)); err == nil && h.opts.Pushes != nil {
		a.Key, a.CSRF, a.Kinds = h.opts.Pushes.Key(), csrfOf(cookie.Value), PushKinds()
	}
	answerJSON(w, a)
	return nil
}

// choosePush serves POST of pushPath, for a cookie and from this host's page alone.
func (h *Host) choosePush(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	cookie, p, why := h.fromPage(r)
	if why != nil {
		return why
	}
	if h.opts.Pushes == nil {
		return errNoPush
	}
	var asked struct {
		Subscription webpush.Subscription `json:"subscription"`
		Choice       *PushChoice          `json:"choice"`
	}
	if jsonspan.Decode(http.MaxBytesReader(w, r.Body, maxPush), &asked) != nil {
		return &admission.Refusal{Status: http.StatusBadRequest, Text: "the body must be JSON with subscription and choice", Quiet: true}
	}
	if c := asked.Choice; c != nil {
		c.Terminals = slices.DeleteFunc(c.Terminals, func(id string) bool { return !h.Sees(p, id) })
		if slices.Sort(c.Terminals); len(c.Terminals) > MaxPushTerminals {
			return &admission.Refusal{Status: http.StatusBadRequest, Text: fmt.Sprintf("choose at most %d terminals, or all", MaxPushTerminals), Quiet: true}
		}
		for _, kind := range c.Kinds {
			if !slices.Contains(PushKinds(), kind) {
				return &admission.Refusal{Status: http.StatusBadRequest, Text: "no such kind of notification", Quiet: true}
			}
		}
		slices.Sort(c.Kinds)
		c.Terminals, c.Kinds = slices.Compact(c.Terminals), slices.Compact(c.Kinds)
	}
	got, err := h.opts.Pushes.Choose(r.Context(), PushBrowser{h.logins.named(cookie), asked.Subscription}, asked.Choice)
	if wrong, ok := errors.AsType[*PushRefused](err); ok {
		return &admission.Refusal{Status: http.StatusBadRequest, Text: wrong.Why, Quiet: true}
	} else if err != nil {
		h.log.Error().Err(err).Msg("the choice of a browser's notifications")
		return errPushDown
	}
	answerJSON(w, got)
	return nil
}

// fromPage returns the cookie and the principal of a request that changes something. It
// must be sent by this host's page, which knows csrfOf.
func (h *Host) fromPage(r *http.Request) (cookie string, p rights.Principal, why *admission.Refusal) {
	c, err := r.Cookie(h.checks.LoginCookie(r))
	if err != nil {
		return "", p, admission.ErrNoToken
	}
	if r.Header.Get("Origin") == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get(csrfHeader)), []byte(csrfOf(c.Value))) != 1 {
		return "", p, admission.ErrForeignSite
	}
	p, ok := h.logins.find(c.Value)
	if !ok {
		return "", p, admission.ErrNoToken
	}
	return c.Value, p, nil
}

// named returns the login of a cookie that was found.
func (s *logins) named(cookie string) BrowserLogin {
	hash := sha256.Sum256([]byte(cookie))
	one, _ := s.browsers.Get(hash)
	return BrowserLogin{Cookie: hash[:], Token: one.by.Token[:], Name: one.by.Name, Until: one.until.UTC()}
}

// LoginOf returns the principal of a browser's login; ok is false if the browser has
// logged out, or its token has ended. The end of the login's time is neither: from then
// on only the token counts. A login that another node has just made may not have arrived
// here yet; LoginOf waits for it, for at most half a second.
func (h *Host) LoginOf(b BrowserLogin) (p rights.Principal, ok bool) {
	if len(b.Cookie) != sha256.Size || len(b.Token) != sha256.Size {
		return p, false
	}
	switch token := [sha256.Size]byte(b.Token); {
	case time.Now().Before(b.Until):
		p, ok = h.logins.by([sha256.Size]byte(b.Cookie))
	case b.Name == "":
		p, ok = rights.Principal{Role: rights.RoleAdmin}, h.opts.Token != "" && token == sha256.Sum256([]byte(h.opts.Token))
	case h.opts.Logins != nil:
		p, ok = h.opts.Logins.Of(token, b.Name)
	}
	return asBrowser(p), ok && p.May(rights.Page)
}

// by returns the principal of the token by which a browser is logged in.
func (s *logins) by(hash [sha256.Size]byte) (p rights.Principal, ok bool) {
	look := func() bool {
		one, there := s.browsers.Get(hash)
		p, ok = one.by, there && one.principal.Life().Err() == nil
		return ok
	}
	if !look() && s.shared != nil {
		change.Soon(sharedTime, func() bool { s.look(); return look() })
	}
	return p, ok
}

// Sees reports whether a principal may see a terminal now.
func (h *Host) Sees(p rights.Principal, id string) bool {
	_, ok := catalogue{h, &p}.find(id)
	return ok
}
