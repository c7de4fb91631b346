package terminals

import (
	"encoding/json"
	"slices"
	"strings"

	"tether/internal/change"
)

// rowBook has the versions of the rows of a lister's list, so that pages are sent only
// new rows.
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

// nextRow returns the version for another change.
func (b *Book) nextRow() int64 {
	b.rowVersion++
	return b.rowVersion
}

// changed records a change and wakes the goroutines that wait for one.
func (b *rowBook) changed(version int64) {
	b.version = version
	b.moved.Raise()
}

// noteGone records that a terminal is not listed any more.
func (b *rowBook) noteGone(id string, version int64) {
	b.changed(version)
	b.gone.add(id, version, maxGone)
}

// maxRunning bounds the command line in a row, in bytes, because a row is sent to each
// page whenever something in it changes.
const maxRunning = 2 << 10

// Head returns the beginning of a command line, in whole characters.
func Head(line string) string {
	return strings.ToValidUTF8(line[:min(len(line), maxRunning)], "")
}

// rowBatch is how many rows are encoded before the mutex is released.
const rowBatch = 256

// RowChanges are the changes of a list for a page.
type RowChanges struct {
	Rows   []json.RawMessage
	Gone   []string // the ids of removed terminals
	Whole  bool     // rows is the whole list
	Known  bool     // the host knows people
	Person string   // the name of who looks, if it is one of them
}

// RowsSince returns the changes since a version, which is 0 for a page without a list,
// and the new version. moved is closed when there is another change. row encodes the row
// of a terminal for somebody who sees its text from a position on; a row is encoded once
// for all pages that see all its text. It takes the lock, and calls row with it.
func (b *Book) RowsSince(use *Hold, version int64, row func(t *Terminal, from int64) json.RawMessage) (c RowChanges, now int64, moved <-chan struct{}) {
	b.mu.Lock()
	book := &use.Lister.book
	now, moved = book.version, book.moved.Next()
	var some bool
	c.Gone, some = book.gone.since(version, now)
	c.Whole = !some
	var due []*Terminal
	for _, t := range use.Lister.Terminals {
		if c.Whole || t.rowVersion > version {
			due = append(due, t)
		}
	}
	c.Known, c.Person = b.Roster.On, b.Roster.People[use.Owner]
	b.mu.Unlock()
	c.Rows = make([]json.RawMessage, 0, len(due))
	for batch := range slices.Chunk(due, rowBatch) {
		c.Rows = b.encodeRows(use, c.Rows, batch, row)
	}
	return c, now, moved
}

// encodeRows appends the rows of those terminals that still exist.
func (b *Book) encodeRows(use *Hold, rows []json.RawMessage, terminals []*Terminal, row func(t *Terminal, from int64) json.RawMessage) []json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range terminals {
		from, ok := use.Sees(t.Subject, b.Roster)
		switch {
		case t.gone() || !ok: // the next update reports that it is gone
		case from > 0:
			rows = append(rows, row(t, from))
		case t.row == nil || t.rowEncoded != t.rowVersion:
			t.row, t.rowEncoded = row(t, 0), t.rowVersion
			fallthrough
		default:
			rows = append(rows, t.row)
		}
	}
	return rows
}
