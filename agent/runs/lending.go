package runs

import (
	"time"

	"tether/agent/history"
	"tether/agent/loans"
)

// lend notes the changes of a terminal's loans since the last call, before p is added,
// which was printed in that time. It adds the part of p that was printed before a loan
// has begun, and returns the rest. In doubt text was not lent: a loan that has ended
// counts as ended before p, and one that has begun counts from its first offset on.
func (x *recording) lend(p []byte, now time.Time) (rest []byte) {
	all := x.h.Info().Loans
	here := map[string]*loans.Loan{}
	for i := range all {
		if id := x.r.runs.opts.HostID(all[i].Host); id != "" {
			here[id] = &all[i]
		}
	}
	for id, was := range x.lent {
		if l := here[id]; l == nil || l.At < 0 || l.At > was.at {
			x.note(history.Note{Kind: history.NoteUnlent, Host: id})
			delete(x.lent, id)
		}
	}
	for id, l := range here {
		was, noted := x.lent[id]
		end := x.w.End() + int64(len(p))
		switch {
		case noted && was.version == l.Version:
			continue
		case !noted && l.At < 0: // nobody knows when it began
			p = x.split(p, end, now)
			l.At = end
		case !noted && l.At > end:
			continue // it will be noted there
		case !noted:
			p = x.split(p, l.At, now)
		}
		at := max(x.w.End(), was.at)
		if noted {
			at = was.at
		}
		x.lent[id] = loan{at, l.Version}
		x.note(lentNote(id, &l.Audience))
	}
	return p
}

// split adds the part of p that comes before a text offset, and returns the rest.
func (x *recording) split(p []byte, off int64, now time.Time) []byte {
	n := min(max(off-x.w.End(), 0), int64(len(p)))
	if n == 0 {
		return p
	}
	if x.hidden {
		x.lost(n)
	} else {
		x.add(p[:n], now)
	}
	return p[n:]
}

// lentNote is the note that a terminal is lent to an audience.
func lentNote(id string, a *loans.Audience) history.Note {
	n := history.Note{Kind: history.NoteLent, Host: id, Denied: a.Denied, Guests: a.GuestsOnly}
	for _, g := range a.Grants {
		n.Grants = append(n.Grants, history.Grant(g))
	}
	return n
}
