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
	"tether/internal/change"
	"tether/screen"
)

func (h *Host) summaryLocked(t *terminal, i *agenttools.Info) page.Summary {
	s := page.Summary{ID: i.ID, Machine: i.Machine, Owner: h.roster.People[t.creator.principal.Owner], Name: t.name, State: "running", Cols: i.Cols, Rows: i.Rows, Watching: t.observersLocked(), Ports: t.openPortsLocked()}
	switch {
	case i.Exit != nil:
		s.State = "exited"
	case t.isAway():
		s.State = "away"
	}
	return s
}

// rowLocked returns the row of t for a viewer who sees its text from a position on.
func (h *Host) rowLocked(t *terminal, from int64) page.Row {
	i := t.describeLocked(from)
	r := page.Row{Summary: h.summaryLocked(t, &i), URI: t.uri, Title: i.Title, Cwd: i.Cwd, Running: head(i.Running),
		Target: string(t.state.ExecutionTarget), Claim: h.holderLocked(t.state.Claim), Created: i.CreatedAt.UnixMilli()}
	if from == 0 && r.State == "running" {
		r.URL = t.printed
	}
	if i.Exit != nil && t.state.Lifecycle.ExitCode != nil {
		r.ExitCode = &i.Exit.Code
	}
	r.Awaits, r.Ready, r.Checkout = t.awaitsLocked().String(), t.readyLocked(), i.Checkout
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
	if !h.roster.On {
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
	if c := h.clients[claim.ClientID]; c != nil {
		return c.Machine()
	}
	return screen.Clean(claim.ClientID[:min(len(claim.ClientID), 8)])
}

// maxRunning bounds the command line in a row, in bytes, because a row is sent to each
// page whenever something in it changes.
const maxRunning = 2 << 10

// head returns the beginning of a command line, in whole characters.
func head(line string) string {
	return strings.ToValidUTF8(line[:min(len(line), maxRunning)], "")
}

// rowBook has the versions of the rows of a lister's list, so that pages are sent only
// new rows. Guarded by the host's mutex.
type rowBook struct {
	version int64 // of the newest change
	moved   change.Signal
	gone    tombstones[string] // the ids of removed rows
}

// maxGone bounds the removed rows that are remembered. A page that has missed more gets
// the whole list.
const maxGone = 1024

// tombstones are the removed members of a list, oldest first, for readers that are sent
// only what has changed.
type tombstones[T any] struct {
	all  []tombstone[T]
	from int64 // version up to which they were forgotten
}

type tombstone[T any] struct {
	of      T
	version int64
}

// add adds one. Beyond most it forgets the oldest quarter.
func (g *tombstones[T]) add(of T, version int64, most int) {
	g.all = append(g.all, tombstone[T]{of, version})
	if len(g.all) > most {
		g.from = g.all[most/4].version
		g.all = slices.Delete(g.all, 0, most/4+1)
	}
}

// since returns those after one version and up to another. It returns false for a reader
// that needs the whole list: it has none, or some were forgotten.
func (g *tombstones[T]) since(after, upTo int64) (gone []T, ok bool) {
	if after == 0 || after < g.from {
		return nil, false
	}
	for _, one := range g.all {
		if one.version > after && one.version <= upTo {
			gone = append(gone, one.of)
		}
	}
	return gone, true
}

// nextRowLocked returns the version for another change.
func (h *Host) nextRowLocked() int64 {
	h.rowVersion++
	return h.rowVersion
}

// changedLocked records a change and wakes the goroutines that wait for one.
func (b *rowBook) changedLocked(version int64) {
	b.version = version
	b.moved.Raise()
}

// goneLocked records that a terminal is not listed any more.
func (b *rowBook) goneLocked(id string, version int64) {
	b.changedLocked(version)
	b.gone.add(id, version, maxGone)
}

// rows returns the whole list of a principal, in the order of the page: by machine,
// running before exited, the newest first.
func (h *Host) rows(p rights.Principal) []page.Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.roster.Viewer(p)
	var all []page.Row
	for t := range h.everyLocked() {
		if from, ok := v.Sees(t.subject, h.roster); ok {
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

// rowBatch is how many rows are encoded before the mutex is released.
const rowBatch = 256

// updateSince returns the update since a version, which is 0 for a page without a list,
// and the new version. moved is closed when there is another change.
func (h *Host) updateSince(use *hold, version int64) (u page.Update, now int64, moved <-chan struct{}) {
	h.mu.Lock()
	b := &use.l.book
	now, moved = b.version, b.moved.Next()
	var some bool
	u.Gone, some = b.gone.since(version, now)
	u.Whole = !some
	var due []*terminal
	for _, t := range use.l.terminals {
		if u.Whole || t.rowVersion > version {
			due = append(due, t)
		}
	}
	if u.Whole && h.roster.On {
		u.Me = new(h.roster.People[use.Owner])
	}
	h.mu.Unlock()
	u.Rows = make([]json.RawMessage, 0, len(due))
	for batch := range slices.Chunk(due, rowBatch) {
		u.Rows = h.encodeRows(use, u.Rows, batch)
	}
	return u, now, moved
}

// encodeRows appends the rows of those terminals that still exist. Each is encoded once
// for all pages that see all its text.
func (h *Host) encodeRows(use *hold, rows []json.RawMessage, terminals []*terminal) []json.RawMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range terminals {
		from, ok := use.Sees(t.subject, h.roster)
		if t.gone() || !ok {
			continue // the next update reports that it is gone
		}
		if from > 0 {
			some, _ := json.Marshal(h.rowLocked(t, from)) // has nothing that cannot be encoded
			rows = append(rows, some)
			continue
		}
		if t.row == nil || t.rowEncoded != t.rowVersion {
			t.row, _ = json.Marshal(h.rowLocked(t, 0)) // likewise
			t.rowEncoded = t.rowVersion
		}
		rows = append(rows, t.row)
	}
	return rows
}
