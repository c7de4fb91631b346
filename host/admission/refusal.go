package admission

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Refusal says why a request is refused. Only Checks.Refuse answers and logs it. It is
// never changed.
type Refusal struct {
	Status int
	Text   string // for the sender
	Quiet  bool   // there may be many: do not log it
}

// Error returns the refusal's text.
func (r *Refusal) Error() string { return r.Text }

// Handler serves a request, or returns why it is refused.
type Handler = func(http.ResponseWriter, *http.Request) *Refusal

// Refusals of several doors.
var (
	ErrNoToken     = &Refusal{Status: http.StatusUnauthorized, Text: "a token is required, as ?tkn= or as Authorization: Bearer"}
	ErrWrongToken  = &Refusal{Status: http.StatusForbidden, Text: "the token is wrong, revoked or expired"}
	ErrForeignPage = &Refusal{Status: http.StatusForbidden, Text: "this web page may not connect to this host"}
	ErrForeignName = &Refusal{Status: http.StatusForbidden, Text: "this host has another name; see --public-url"}
	ErrForeignSite = &Refusal{Status: http.StatusForbidden, Text: "requests from other pages are refused"}
	ErrBusy        = &Refusal{Status: http.StatusServiceUnavailable, Text: "too many requests at a time with tokens of this name", Quiet: true}

	errGuessing = &Refusal{Status: http.StatusTooManyRequests, Text: "too many wrong tokens from this address; try again later"}
)

// Refuse answers a request with the reason why it is refused, and logs it.
func (c *Checks) Refuse(w http.ResponseWriter, r *http.Request, why *Refusal) {
	if c.Noted(r, why) {
		c.opts.Log(r, why)
	}
	w.Header().Set("Connection", "close") // a refused client keeps no connection
	switch why.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(int(guessEvery.Seconds())))
	}
	http.Error(w, why.Text, why.Status)
}

// Noted reports whether one more refused request of a place is to be logged. Wrong tokens
// have limits of their own; log lines about other refusals of one place, such as requests
// without a token, are limited in the same way.
func (c *Checks) Noted(r *http.Request, why *Refusal) bool {
	if why.Quiet || why == ErrWrongToken || why.Status == http.StatusTooManyRequests {
		return !why.Quiet
	}
	return c.logLimit.Allow(PlaceOf(r.RemoteAddr))
}

// MaxForm bounds what a browser sends with a request, in bytes.
const MaxForm = 4 << 10

// AnswerJSON answers with JSON.
func AnswerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only with the connection
}
