package runs

import (
	"math"
	"slices"

	"tether/agent/history"
	"tether/agent/loans"
	"tether/agent/term"
)

const maxOffset = math.MaxInt64

// within returns the parts of ascending spans that lie in one.
func within(spans []history.Span, one history.Span) []history.Span {
	var out []history.Span
	for _, s := range spans {
		if s.From, s.To = max(s.From, one.From), min(s.To, one.To); s.From < s.To {
			out = append(out, s)
		}
	}
	return out
}

// covers reports whether an offset lies in one of the spans, or at its end.
func covers(spans []history.Span, off int64) bool {
	return slices.ContainsFunc(spans, func(s history.Span) bool { return s.From <= off && off <= s.To })
}

// lentSpans returns the ranges of a terminal's text that an asker at a host may see: what
// was printed while the terminal was lent there and a grant covered the asker, in a
// directory that is not forbidden now. There is none if the terminal is not lent there
// any more, or no grant covers the asker any more.
func (r *Runs) lentSpans(terminal string, a Asker) []history.Span {
	id := r.opts.HostID(a.Host)
	if id == "" || !r.stillLent(terminal, a.Host, id) {
		return nil
	}
	is, err := r.opts.History.Run(terminal)
	if err != nil {
		return nil
	}
	t, err := r.opts.History.Text(terminal)
	if err != nil {
		return nil
	}
	defer t.Close()
	notes, err := t.Notes()
	if err != nil {
		return nil
	}
	return lentTo(notes, id, a, is.Dir, func(dir string) bool { return r.never(a.Host, dir) })
}

// stillLent reports whether the terminal is lent to the host, or was when it ended.
func (r *Runs) stillLent(terminal, host, id string) bool {
	if h, err := r.opts.Access.Terminal(term.ID(terminal)); err == nil {
		return h.Info().LentToHost(host)
	}
	is, err := r.opts.History.Run(terminal)
	return err == nil && slices.Contains(is.Lent, id)
}

// lentTo is lentSpans from a terminal's notes and its first directory.
func lentTo(notes []history.Note, id string, a Asker, dir string, never func(dir string) bool) (spans []history.Span) {
	var loan *history.Note // the present one
	forbidden, from := never(dir), int64(0)
	end := func(to int64) { // of a range in which nothing has changed
		if first, ok := sees(loan, a); ok && !forbidden {
			spans = join(spans, history.Span{From: max(from, first), To: to})
		}
		from = to
	}
	for i := range notes {
		n := &notes[i]
		switch {
		case n.Kind == history.NoteDir:
			end(n.Off)
			forbidden = never(n.Dir)
		case n.Kind == history.NoteLent && n.Host == id:
			end(n.Off)
			loan = n
		case n.Kind == history.NoteUnlent && n.Host == id:
			end(n.Off)
			loan = nil
		}
	}
	end(maxOffset)
	first, ok := sees(loan, a)
	if !ok {
		return nil
	}
	return within(spans, history.Span{From: first, To: maxOffset})
}

// join adds a span behind ascending ones.
func join(spans []history.Span, s history.Span) []history.Span {
	if n := len(spans); n > 0 {
		s.From = max(s.From, spans[n-1].To) // a note may have been written twice
		if s.From == spans[n-1].To && s.To > s.From {
			spans[n-1].To = s.To
			return spans
		}
	}
	if s.From < s.To {
		spans = append(spans, s)
	}
	return spans
}

// sees reports whether a loan lets the asker see text, and from which offset on.
func sees(loan *history.Note, a Asker) (from int64, ok bool) {
	if loan == nil {
		return 0, false
	}
	audience := loans.Audience{Denied: loan.Denied, GuestsOnly: loan.Guests}
	for _, g := range loan.Grants {
		audience.Grants = append(audience.Grants, loans.Grant(g))
	}
	return audience.Admits(a.Names, a.Owner)
}
