package login

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"tether/host/admission"
	"tether/host/rights"
)

// freshTime is how long a person may end entries after showing who they are.
const freshTime = 15 * time.Minute

// Refusals of a person who wants to end an entry.
var (
	ErrNotFresh = &admission.Refusal{Status: http.StatusForbidden, Text: "log in again: you have not shown who you are within the last 15 minutes", Quiet: true}
	ErrUnproven = &admission.Refusal{Status: http.StatusForbidden, Text: "your identity provider does not say when you have logged in there: use the command at the host", Quiet: true}
)

// browserPrefix begins the ids of browsers' logins.
const browserPrefix = "b-"

// entryID returns the id of a login, which does not reveal its secret.
func entryID(cookie [sha256.Size]byte) string { return hex.EncodeToString(cookie[:8]) }

// Entries returns the logged-in browsers, except for those whose login the register
// lists.
func (s *Table) Entries(besides rights.Register) (all []rights.Entry) {
	for cookie, one := range s.browsers.All() {
		if one.principal.Life().Err() != nil || besides != nil && besides.Session(one.principal.Token) {
			continue
		}
		since, until := one.until.Add(-Time), one.until
		all = append(all, rights.Entry{Kind: rights.EntrySession, ID: browserPrefix + entryID(cookie), Name: cmp.Or(one.principal.Name, "the host's own token"), Detail: "browser, by token",
			Since: &since, Until: &until, OwnerID: one.principal.Owner})
	}
	return all
}

// Fresh returns nil if a browser's person has shown within freshTime who they are.
func (s *Table) Fresh(cookie string) *admission.Refusal {
	switch one, _ := s.browsers.Get(sha256.Sum256([]byte(cookie))); {
	case one.proof == rights.ProofMissing:
		return ErrUnproven
	case one.proof != rights.ProofNow || time.Until(one.until) <= Time-freshTime:
		return ErrNotFresh
	}
	return nil
}

// Has reports whether the id of an entry is of those that Entries returns.
func Has(id string) bool { return strings.HasPrefix(id, browserPrefix) }

// End logs a browser out, by the id of its entry.
func (s *Table) End(id string) bool {
	for cookie, one := range s.browsers.All() {
		if browserPrefix+entryID(cookie) == id {
			one.end(errLoggedOut)
			return true
		}
	}
	return false
}
