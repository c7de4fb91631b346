package host

import (
	"sort"
)

// entry is one encoded envelope of a channel. It is immutable, and all connections send
// the same bytes.
type entry struct {
	seq   int64
	msg   []byte  // the whole notification, ready for the wire
	old   []byte  // the encoding for clients up to 0.8 where that differs; nil means msg
	pos   int64   // position in the terminal's text after this entry
	from  *client // the owner that sent this text, to which it is not sent back; nil for other entries
	only  *client // the only client of a session that gets this entry, besides clients that may see everything; nil means all
	past  bool    // it contains earlier text: not for viewers who may see only later text
	here  bool    // not for other nodes, which make their own
	own   *answer // for the client whose action this is about, instead of msg; nil for other entries
	start int64   // bytes of all entries of this log before it; set by add
}

// answer is a notification for the client that has sent an action, with what concerns
// nobody else.
type answer struct {
	to  *client
	msg []byte
}

// to returns the notification in the encoding for a client.
func (e *entry) to(c *client) []byte {
	if e.own != nil && e.own.to == c {
		return e.own.msg
	}
	if e.old != nil && c.old() {
		return e.old
	}
	return e.msg
}

// chanLog keeps the newest envelopes of one channel, bounded in bytes and in number.
// Subscribers are cursors into it. An index counts entries since the channel was created,
// and only grows. Guarded by the host's mutex.
type chanLog struct {
	maxBytes, maxCount int

	ring  []entry // length is a power of two, or 0
	first int64   // index of the oldest entry kept
	next  int64   // index that the next entry will get
	total int64   // bytes of all entries ever added
	lost  int64   // serverSeq of the newest dropped envelope, or of the creation: all later envelopes are here
	need  int64   // entries from this index on may exceed the bounds, by up to the factor neededTimes; math.MaxInt64: none may
}

// neededTimes is the factor by which a log may exceed its bounds while the child waits
// for subscribers. The owner may still have 256 KiB in transit, which JSON escapes can
// make six times as long, and some subscribers may be nearly as far behind.
const neededTimes = 4

// add appends e and drops the oldest entries that no longer fit.
func (l *chanLog) add(e entry) {
	e.start = l.total
	l.total += int64(len(e.msg))
	if e.own != nil {
		l.total += int64(len(e.own.msg))
	}
	if int(l.next-l.first) == len(l.ring) {
		l.resize(max(4, 2*len(l.ring)))
	}
	*l.slot(l.next) = e
	l.next++
	for l.next-l.first > 1 && l.over(1) && (l.first < l.need || l.over(neededTimes)) {
		l.dropFirst()
	}
}

// over reports whether the log holds more than so many times its bounds.
func (l *chanLog) over(times int64) bool {
	return l.total-l.slot(l.first).start > times*int64(l.maxBytes) || l.next-l.first > times*int64(l.maxCount)
}

func (l *chanLog) dropFirst() {
	old := l.slot(l.first)
	l.lost = old.seq
	*old = entry{}
	l.first++
}

// resize changes the capacity of the ring to size: a power of two with room for all
// entries that are kept.
func (l *chanLog) resize(size int) {
	ring := make([]entry, size)
	for i := l.first; i < l.next; i++ {
		ring[int(i)&(size-1)] = *l.slot(i)
	}
	l.ring = ring
}

func (l *chanLog) slot(i int64) *entry { return &l.ring[int(i)&(len(l.ring)-1)] }

// at returns the entry with index i, which must be in [first, next).
func (l *chanLog) at(i int64) *entry { return l.slot(i) }

// behind returns the number of bytes that a cursor at index i has not delivered yet.
func (l *chanLog) behind(i int64) int64 {
	if i = max(i, l.first); i >= l.next {
		return 0
	}
	return l.total - l.slot(i).start
}

// after returns the index of the first kept entry whose serverSeq is greater than seq.
// whole says that no entry after seq was dropped.
func (l *chanLog) after(seq int64) (i int64, whole bool) {
	n := sort.Search(int(l.next-l.first), func(i int) bool { return l.slot(l.first+int64(i)).seq > seq })
	return l.first + int64(n), seq >= l.lost
}
