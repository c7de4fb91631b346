package history

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Search is a question about the text of all runs.
type Search struct {
	Expression *Expression
	Runs       Query // only in these runs, and in text of the time that it names
	Context    int   // lines before and after each hit, at most MaxContext
	Most       int   // hits, at most MaxHits; 0 means 100
	// See, if not nil, returns which text of a run may be searched and shown.
	See func(Run) []Span
}

// Span is text from an offset to before another.
type Span struct{ From, To int64 }

// Hit is a line that matches.
type Hit struct {
	Run    Run       // the command that printed it, or the terminal
	Time   time.Time // it was printed by then
	Offset int64     // of the line in the terminal's text
	Line   string    // the line, or a part of a long one
	Match  [2]int    // bounds of the first match in Line, in bytes
	Before []string
	After  []string
}

// Searched says how far a search came.
type Searched struct {
	Hits int
	Back time.Time // all text since then was searched; zero if all was
	More bool      // it ended with Search.Most hits
}

const (
	defaultHits   = 100
	searchWorkers = 2
	searchAhead   = 8 // units that are searched before earlier ones were shown
)

// Search calls hit with the lines that match, newest first, until hit returns false. It
// ends when ctx ends; that is no error if its deadline has passed. Unreadable text has no
// hits.
func (h *History) Search(ctx context.Context, s Search, hit func(Hit) bool) (Searched, error) {
	if s.Most <= 0 || s.Most > MaxHits {
		s.Most = min(max(s.Most, defaultHits), MaxHits)
	}
	s.Context = min(max(s.Context, 0), MaxContext)
	k := &seeker{h: h, Search: s, units: make(chan *unit, searchAhead), work: make(chan *unit)}
	work, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { k.dispatch(work) })
	for range searchWorkers {
		wg.Go(func() { k.search(work) })
	}
	done, err := k.show(ctx, hit)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return done, err
}

// seeker is one search. Three kinds of goroutines share it: one finds the units in their
// order, some search them, and the caller's shows what was found, in that order.
type seeker struct {
	Search
	h       *History
	units   chan *unit // in order; closed after the last one
	work    chan *unit // the same units
	ended   time.Time  // all text since then is in units; set before units is closed
	segment []byte     // the one that was read last, of the goroutine that finds the units
}

// show passes the hits of units on.
func (k *seeker) show(ctx context.Context, hit func(Hit) bool) (done Searched, err error) {
	var known Run
	for u := range k.units {
		select {
		case <-u.done:
			err = cmp.Or(ctx.Err(), u.err)
		case <-ctx.Done(): // u is still being searched
			err = ctx.Err()
		}
		if err != nil {
			done.Back = u.newest
			return done, err
		}
		for _, x := range slices.Backward(u.hits) {
			if x.Run.ID != known.ID {
				if known, err = k.h.Run(x.Run.ID); err != nil {
					continue // forgotten meanwhile
				}
			}
			x.Run = known
			if done.Hits++; !hit(x) || done.Hits == k.Most {
				return Searched{Hits: done.Hits, Back: x.Time, More: true}, nil
			}
		}
	}
	done.Back = k.ended
	return done, ctx.Err()
}

// dispatch finds the units, newest first.
func (k *seeker) dispatch(ctx context.Context) {
	defer close(k.work)
	defer close(k.units)
	all := k.trails()
	heap.Init(&all)
	for len(all) > 0 {
		t := all[0]
		k.ended = t.newest
		oldest := all.second()
		if k.Runs.Since.After(oldest) {
			oldest = k.Runs.Since
		}
		var u *unit
		if !t.opened {
			t.open(k)
		} else {
			u = t.next(k, oldest)
		}
		if t.over || t.newest.Before(k.Runs.Since) {
			heap.Pop(&all)
		} else {
			heap.Fix(&all, 0)
		}
		if ctx.Err() != nil {
			return
		}
		if u == nil || !k.mayMatch(u) {
			continue
		}
		for _, to := range []chan *unit{k.units, k.work} {
			select {
			case to <- u:
			case <-ctx.Done():
				return
			}
		}
	}
	k.ended = time.Time{}
}

// mayMatch reports whether the unit must be searched.
func (k *seeker) mayMatch(u *unit) bool {
	from, to := u.bounds()
	if !k.Runs.Until.IsZero() && u.pieces[u.from].first >= k.Runs.Until.UnixMicro() ||
		!slices.ContainsFunc(u.of.spans, func(s Span) bool { return s.From < to && s.To > from }) {
		return false
	}
	return slices.ContainsFunc(u.pieces[u.from:u.to], func(p piece) bool { return p.may })
}

// search searches units until there are no more.
func (k *seeker) search(ctx context.Context) {
	w := &searcher{seeker: k, matching: matching{Expression: k.Expression}, frames: frames{h: k.h}}
	defer w.frames.close()
	for u := range k.work {
		u.err = w.unit(ctx, u)
		close(u.done)
	}
}

// trails returns the terminals that have runs which match, each with what of its text
// belongs to them.
func (k *seeker) trails() (all trails) {
	by := map[string]*trail{}
	q := k.Runs
	for r := range k.h.List(Query{Terminal: q.Terminal, Since: q.Since, Until: q.Until}) {
		t := by[r.Terminal]
		if t == nil {
			t = &trail{terminal: r.Terminal, newest: r.Ended}
			by[r.Terminal] = t
		}
		if r.Running() {
			t.newest = time.Now()
		} else if r.Ended.After(t.newest) {
			t.newest = r.Ended
		}
		end := r.End
		if end < 0 {
			end = maxOffset
		}
		if r.Command > 0 {
			t.commands = append(t.commands, command{Span{r.Start, end}, r.ID})
		}
		if !q.Matches(&r) {
			continue
		}
		spans := []Span{{r.Start, end}}
		if k.See != nil {
			spans = k.See(r)
		}
		for _, s := range spans {
			if s = (Span{max(s.From, r.Start), min(s.To, end)}); s.From < s.To {
				t.spans = append(t.spans, s)
			}
		}
	}
	for _, t := range by {
		slices.SortFunc(t.commands, func(a, b command) int { return cmp.Compare(a.From, b.From) })
		if len(t.spans) > 0 {
			t.spans = merged(t.spans)
			all = append(all, t)
		}
	}
	return all
}

// merged returns spans in order, those that overlap as one.
func merged(spans []Span) []Span {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	all := spans[:1]
	for _, s := range spans[1:] {
		if last := &all[len(all)-1]; s.From <= last.To {
			last.To = max(last.To, s.To)
		} else {
			all = append(all, s)
		}
	}
	return all
}
