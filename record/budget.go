package record

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Budget bounds what many logs keep together, in bytes. It is safe for concurrent use.
type Budget struct {
	most, spare int64 // set at construction
	used        atomic.Int64
	// again: while used is below it, nobody tries to make room: the last try has asked
	// all logs and gained little. 0: try.
	again atomic.Int64

	squeezing sync.Mutex // held while room is made; locks of logs are taken under it
}

// NewBudget returns a budget of most bytes. When it is exceeded, Squeeze makes room until
// spare bytes are free.
func NewBudget(most, spare int64) *Budget { return &Budget{most: most, spare: spare} }

// Used returns how many bytes all logs keep, and how many they may.
func (b *Budget) Used() (used, most int64) { return b.used.Load(), b.most }

// Over reports whether the budget is exceeded, so that it is time for Squeeze.
func (b *Budget) Over() bool { return b.used.Load() > max(b.most, b.again.Load()) }

// step is how much must be added before another try to make room, after one that failed.
func (b *Budget) step() int64 { return b.most / 16 }

// Share is the part of a budget that one log takes. The log's lock guards it.
type Share struct {
	budget *Budget
	held   int64
	left   bool
}

// NewShare returns an empty part.
func (b *Budget) NewShare() Share { return Share{budget: b} }

// Set sets the part, in bytes. It reports whether that has grown and the budget is
// exceeded: then the caller calls Squeeze, without the log's lock unless that guards all
// logs of the budget.
func (s *Share) Set(now int64) (over bool) {
	if s.left || now == s.held {
		return false
	}
	grown := now > s.held
	used := s.budget.used.Add(now - s.held)
	if s.held = now; grown {
		return s.budget.Over()
	}
	for { // something was removed, so there may be room again
		again := s.budget.again.Load()
		if again <= used+s.budget.step() || s.budget.again.CompareAndSwap(again, used+s.budget.step()) {
			return false
		}
	}
}

// Held returns the part, in bytes.
func (s *Share) Held() int64 { return s.held }

// Leave ends the part: the log takes nothing from the budget any more.
func (s *Share) Leave() {
	s.Set(0)
	s.left = true
}

// Keeper is a log, or a part of one, that can keep less.
type Keeper interface {
	// Held returns how many bytes it keeps.
	Held() int64
	// Shrink makes it keep at most so many bytes, as far as that is possible, and sets
	// its Share.
	Shrink(to int64)
}

// Squeeze makes logs keep less if the budget is exceeded. Those in first lose all but
// least bytes, in their order, until there is room. Then those in rest are reduced to
// equal parts, the largest first; none to less than least.
func (b *Budget) Squeeze(first, rest []Keeper, least int64) {
	b.squeezing.Lock()
	defer b.squeezing.Unlock()
	if !b.Over() {
		return // another goroutine has done it meanwhile
	}
	room := b.most - b.spare
	full := func() bool { return b.used.Load() > room }
	left := room
	for _, k := range first {
		if full() {
			k.Shrink(least)
		}
		left -= k.Held()
	}
	type holding struct {
		Keeper
		held int64
	}
	var all []holding
	for _, k := range rest {
		all = append(all, holding{k, k.Held()})
	}
	slices.SortStableFunc(all, func(x, y holding) int { return cmp.Compare(y.held, x.held) })
	level := left
	for i := range all { // what the smallest do not need is for the others
		one := all[len(all)-1-i]
		if level = left / int64(len(all)-i); one.held > level {
			break
		}
		left -= one.held
	}
	for level = max(level, least); full(); level = max(level/2, least) {
		for i := range all {
			if h := &all[i]; full() && h.held > level {
				h.Shrink(level)
				h.held = h.Held()
			}
		}
		if level == least {
			break
		}
	}
	if b.again.Store(0); full() { // the guaranteed parts alone exceed the bound
		b.again.Store(b.used.Load() + b.step())
	}
}
