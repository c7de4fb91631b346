package host

import (
	"net/http"
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
	all := make([]Lent, 0, len(h.terminals.Listed)+len(h.terminals.Parked))
	for t := range h.terminals.Every() {
		i := t.Describe(0)
		one := Lent{Summary: h.summaryLocked(t, &i), Bytes: t.Out.End() - t.Out.Oldest(), Created: t.Created.UTC(), May: t.MayWatch()}
		one.Machine, one.Name = screen.Clean(one.Machine), screen.Clean(one.Name)
		all = append(all, one)
	}
	return all
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
				if !ok || ahp.CheckAudienceName(to, false) != nil || !h.terminals.EndGrant(id, to) {
					return false
				}
				h.audit(rights.AuditWithdrawn, remote{name: r.RemoteAddr, principal: p}, rights.AuditEvent{Terminal: id, Detail: to})
				return true
			}},
	}
}
