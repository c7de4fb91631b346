package host

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"tether/agenttools"
	"tether/ahp"
	"tether/host/page"
	"tether/host/rights"
	"tether/host/terminals"
	"tether/screen"
)

func (h *Host) summaryLocked(t *terminals.Terminal, i *agenttools.Info) page.Summary {
	s := page.Summary{ID: i.ID, Machine: i.Machine, Owner: h.terminals.Roster.People[t.Creator.Who.Owner], Name: t.Name, State: "running", Cols: i.Cols, Rows: i.Rows, Watching: t.Observers(), Ports: openPortsLocked(t)}
	switch {
	case i.Exit != nil:
		s.State = "exited"
	case t.IsAway():
		s.State = "away"
	}
	return s
}

// rowLocked returns the row of t for a viewer who sees its text from a position on.
func (h *Host) rowLocked(t *terminals.Terminal, from int64) page.Row {
	i := t.Describe(from)
	r := page.Row{Summary: h.summaryLocked(t, &i), URI: t.URI, Title: i.Title, Cwd: i.Cwd, Running: terminals.Head(i.Running),
		Target: string(t.State.ExecutionTarget), Claim: h.holderLocked(t.State.Claim), Created: i.CreatedAt.UnixMilli()}
	if from == 0 && r.State == "running" {
		r.URL = t.Printed
	}
	if i.Exit != nil && t.State.Lifecycle.ExitCode != nil {
		r.ExitCode = &i.Exit.Code
	}
	r.Awaits, r.Ready, r.Checkout = t.Awaits().String(), t.Ready(), i.Checkout
	r.Adopted = i.Adopted.Label()
	if i.Checkout != nil {
		r.Label = i.Checkout.Label()
	}
	if !i.Away.IsZero() {
		r.Away, r.AwayWhy = i.Away.UnixMilli(), i.AwayWhy
	}
	if !i.KeptUntil.IsZero() {
		r.Until, r.Dropped = i.KeptUntil.UnixMilli(), i.Dropped
	}
	if !h.terminals.Roster.On {
		r.Owner = ""
	}
	return r
}

// holderLocked describes the holder of a claim for people: the name of a machine or user,
// or the kind of holder.
func (h *Host) holderLocked(claim ahp.Claim) string {
	if claim.ClientID == "" {
		return string(claim.Kind)
	}
	if c := h.terminals.Clients[claim.ClientID]; c != nil {
		return c.Machine()
	}
	return screen.Clean(claim.ClientID[:min(len(claim.ClientID), 8)])
}

// rows returns the whole list of a principal, in the order of the page: by machine,
// running before exited, the newest first.
func (h *Host) rows(p rights.Principal) []page.Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.terminals.Roster.Viewer(p)
	var all []page.Row
	for t := range h.terminals.Every() {
		if from, ok := v.Sees(t.Subject, h.terminals.Roster); ok {
			all = append(all, h.rowLocked(t, from))
		}
	}
	slices.SortStableFunc(all, func(a, b page.Row) int {
		exited := func(r page.Row) int {
			if r.State == "exited" {
				return 1
			}
			return 0
		}
		return cmp.Or(strings.Compare(a.Machine, b.Machine), exited(a)-exited(b), cmp.Compare(b.Created, a.Created), strings.Compare(a.Name, b.Name))
	})
	return all
}

// updateSince returns the update since a version, which is 0 for a page without a list,
// and the new version. moved is closed when there is another change.
func (h *Host) updateSince(use *terminals.Hold, version int64) (u page.Update, now int64, moved <-chan struct{}) {
	c, now, moved := h.terminals.RowsSince(use, version, func(t *terminals.Terminal, from int64) json.RawMessage {
		row, _ := json.Marshal(h.rowLocked(t, from)) // has nothing that cannot be encoded
		return row
	})
	u.Rows, u.Gone, u.Whole = c.Rows, c.Gone, c.Whole
	if c.Whole && c.Known {
		u.Me = &c.Person
	}
	return u, now, moved
}
