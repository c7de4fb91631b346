package host

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"tether/ahp"
	"tether/host/page"
	"tether/host/rights"
	"tether/screen"
)

// Lent is a terminal as administrators see it: names, owners and sizes. It does not have
// the title, which a program may have set.
type Lent struct {
	page.Summary
	Bytes   int64     `json:"bytes"` // of text that is kept
	Created time.Time `json:"created"`
	May     []string  `json:"may"` // who may watch, as in grants; the owner first
}

// Lent lists the terminals of all machines and of the host, oldest first. It is for
// administrators.
func (h *Host) Lent() []Lent {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]Lent, 0, len(h.order)+len(h.parked))
	for t := range h.everyLocked() {
		i := t.describeLocked(0)
		one := Lent{Summary: h.summaryLocked(t, &i), Bytes: t.out.End() - t.out.Oldest(), Created: t.created.UTC(), May: t.mayWatchLocked()}
		one.Machine, one.Name = screen.Clean(one.Machine), screen.Clean(one.Name)
		all = append(all, one)
	}
	return all
}

// EndGrant ends all grants to a name, as in ahp.Grant, for the terminal with that id,
// whoever made them, for as long as it is lent to this host. It reports whether there was
// one.
func (h *Host) EndGrant(id, to string) bool {
	g, ok := h.grantee(h.lookAtPeople(), to)
	if !ok {
		return false
	}
	uri := h.endGrant(id, to, g)
	if uri != "" && h.opts.People != nil {
		h.keepEnded(uri, to, g)
		h.lookAtPeople() // so that what a mirror's owner sends meanwhile does not restore it
	}
	return uri != ""
}

// endGrant is EndGrant without storing it for the next host. It returns the terminal's
// URI, "" if nothing was granted. The node that owns a mirror learns of it from the
// document of people, which all nodes share.
func (h *Host) endGrant(id, to string, g rights.Grantee) (uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.everyLocked() {
		if t.id == id && slices.Contains(t.mayWatchLocked(), to) && !t.creator.owns(g) {
			t.withdrawn = append(t.withdrawn, g)
			h.setAudienceLocked(t, t.audience)
			return t.uri
		}
	}
	return ""
}

// keepEnded stores the end of a grant for the next host. It must not be called with the
// host's mutex.
func (h *Host) keepEnded(uri, to string, g rights.Grantee) {
	if err := h.opts.People.Withdraw(uri, to, g); err != nil {
		h.log.Error().Err(err).Str("terminal", uri).Msg("the end of a grant is not kept: it is in force again after a restart of the host")
	}
}

// endedBeforeLocked returns the grantees whose grants for a terminal an administrator of
// an earlier host has ended. former is the URI that the terminal had there, "" if it is
// the same.
func (h *Host) endedBeforeLocked(uri, former string) []rights.Grantee {
	over := slices.Clone(h.roster.Withdrawn[uri])
	if former == "" {
		return over
	}
	for _, g := range h.roster.Withdrawn[former] {
		if name := h.roster.NameOf(g); name != "" && !slices.Contains(over, g) {
			over = append(over, g)
			h.work.Go(func() { h.keepEnded(uri, name, g) })
		}
	}
	return over
}

// owns reports whether g is the client's owner.
func (c *client) owns(g rights.Grantee) bool {
	return g.Kind == rights.ToPerson && g.ID == c.principal.Owner
}

// ended is what administrators list and end by their tokens. The lists show no output.
func (h *Host) ended() []page.Ended {
	return []page.Ended{
		{Path: "/shells", What: "shells", One: "shell", List: func(p rights.Principal) any { return h.shells(p) },
			End: func(p rights.Principal, r *http.Request, id string) bool {
				return h.endShell(id, remote{name: r.RemoteAddr, principal: p}, "", nil)
			}},
		{Path: "/lent", What: "terminals", One: "grant", List: func(rights.Principal) any { return h.Lent() },
			End: func(p rights.Principal, r *http.Request, name string) bool {
				id, to, ok := strings.Cut(name, "/")
				if !ok || ahp.CheckAudienceName(to, false) != nil || !h.EndGrant(id, to) {
					return false
				}
				h.audit(rights.AuditWithdrawn, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Terminal: id, Detail: to})
				return true
			}},
	}
}
