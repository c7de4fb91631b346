package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"tether/events"
	"tether/host/admission"
	"tether/host/login"
	"tether/host/rights"
	"tether/host/webpush"
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

// PushBrowser is a logged-in browser that takes notifications.
type PushBrowser struct {
	Login login.Browser        `json:"login"`
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
func (pg *Page) pushKey(w http.ResponseWriter, r *http.Request, _ rights.Principal) *admission.Refusal {
	var a struct {
		Key   string   `json:"key"`
		CSRF  string   `json:"csrf"` // for csrfHeader
		Kinds []string `json:"kinds"`
	}
	if cookie, err := r.Cookie(pg.checks.LoginCookie(r)); err == nil && pg.opts.Pushes != nil {
		a.Key, a.CSRF, a.Kinds = pg.opts.Pushes.Key(), csrfOf(cookie.Value), PushKinds()
	}
	admission.AnswerJSON(w, a)
	return nil
}

// choosePush serves POST of pushPath, for a cookie and from this host's page alone.
func (pg *Page) choosePush(w http.ResponseWriter, r *http.Request) *admission.Refusal {
	cookie, p, why := pg.fromPage(r)
	if why != nil {
		return why
	}
	if pg.opts.Pushes == nil {
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
		c.Terminals = slices.DeleteFunc(c.Terminals, func(id string) bool { _, sees := pg.opts.Terminals.Find(p, id); return !sees })
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
	got, err := pg.opts.Pushes.Choose(r.Context(), PushBrowser{pg.logins.Named(cookie), asked.Subscription}, asked.Choice)
	if wrong, ok := errors.AsType[*PushRefused](err); ok {
		return &admission.Refusal{Status: http.StatusBadRequest, Text: wrong.Why, Quiet: true}
	} else if err != nil {
		pg.opts.Log.Error().Err(err).Msg("the choice of a browser's notifications")
		return errPushDown
	}
	admission.AnswerJSON(w, got)
	return nil
}
