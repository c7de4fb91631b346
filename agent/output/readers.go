package output

import "math"

// readers are the readers for which output is kept: open ones, and awaited ones, which
// are expected back and hold the child meanwhile as an open reader does.
type readers struct {
	open    map[*Reader]struct{}
	awaited map[string]int64 // raw offsets of the awaited ones, by name
	over    bool             // there are none any more
	let     bool             // none may hold the child
}

// NoOffset is an offset that no output reaches.
const NoOffset int64 = math.MaxInt64

// Await makes an absent reader at a raw offset hold the child until one arrives under
// that name, or StopWaiting ends that.
func (l *Log) Await(who string, raw int64) {
	if l.readers.awaited == nil {
		l.readers.awaited = map[string]int64{}
	}
	l.readers.awaited[who] = raw
}

// Arrived ends the wait for the reader of that name, and reports whether there was one.
func (l *Log) Arrived(who string) bool {
	_, ok := l.readers.awaited[who]
	if ok {
		delete(l.readers.awaited, who)
		l.owner.Moved()
	}
	return ok
}

// LetGo makes no reader hold the child any more.
func (l *Log) LetGo() { l.readers.let = true }

// Needed returns the raw offset of the first output that a reader which may hold the
// child has not read, or NoOffset.
func (l *Log) Needed() int64 {
	least := NoOffset
	if l.readers.let {
		return least
	}
	for r := range l.readers.open {
		if r.holds && !r.stalled {
			least = min(least, r.pos)
		}
	}
	for _, pos := range l.readers.awaited {
		least = min(least, pos)
	}
	return least
}

// Lag returns how far behind the slowest reader is that may slow the child only a little,
// as weight in the log.
func (l *Log) Lag() int64 {
	most := int64(0)
	for r := range l.readers.open {
		if r.lags {
			most = max(most, l.weight(max(r.pos, l.log.Start())), (l.marks.End()-r.mark)*markCost)
		}
	}
	return most
}

// Blocks reports whether a reader that holds the child would lose output if n more bytes
// were appended.
func (l *Log) Blocks(n int) bool {
	for r := range l.readers.open {
		if r.holds && l.full(r, n) {
			return true
		}
	}
	for _, pos := range l.readers.awaited {
		if l.absent(pos, n) {
			return true
		}
	}
	return false
}

// BlocksBriefly is Blocks for readers that may slow the child only a little.
func (l *Log) BlocksBriefly(n int) (blocks bool) {
	for r := range l.readers.open {
		blocks = r.lags && l.full(r, n) || blocks
	}
	return blocks
}

// StopWaiting makes the child not wait any more for the readers of Blocks: until they
// have caught up, and not at all for awaited ones.
func (l *Log) StopWaiting(n int) {
	for r := range l.readers.open {
		r.stalled = r.stalled || r.holds && l.full(r, n)
	}
	for who, pos := range l.readers.awaited {
		if l.absent(pos, n) {
			delete(l.readers.awaited, who)
		}
	}
}

// StopWaitingBriefly is StopWaiting for the readers of BlocksBriefly.
func (l *Log) StopWaitingBriefly(n int) {
	for r := range l.readers.open {
		r.stalled = r.stalled || r.lags && l.full(r, n)
	}
}

// full reports whether r would lose output if n more bytes were appended. For a reader
// that has stalled it returns false, and clears stalled if the reader has caught up to
// half of the log.
func (l *Log) full(r *Reader, n int) bool {
	limit := l.log.Limit()
	if r.stalled {
		r.stalled = l.overfull(r.pos, r.mark, n, limit/2)
		return false
	}
	return l.overfull(r.pos, r.mark, n, limit)
}

// absent reports whether an awaited reader at the raw offset would lose output if n more
// bytes were appended.
func (l *Log) absent(pos int64, n int) bool {
	return l.overfull(pos, l.marks.Search(pos), n, l.log.Limit())
}

// wake signals the readers whose condition is met.
func (l *Log) wake() {
	for r := range l.readers.open {
		if r.due() {
			r.need = 0
			r.signal()
		}
	}
}

// CloseOf closes the readers of a host, which must not see later output of the child.
func (l *Log) CloseOf(host string) {
	for r := range l.readers.open {
		if r.by.Host == host {
			r.by.Awaits = ""
			r.close()
		}
	}
}

// CloseAll closes all readers, also later ones: nothing follows, not even the exit.
func (l *Log) CloseAll() {
	l.readers.over = true
	for r := range l.readers.open {
		r.closed = true
		r.signal()
	}
}
