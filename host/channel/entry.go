package channel

import (
	"sort"

	"tether/ahp"
	"tether/record"
)

// Entry is one encoded envelope of a channel. It is immutable, and all connections send
// the same bytes.
type Entry struct {
	Piece
	Old  []byte  // the encoding for clients up to 0.8 where that differs; nil means Msg
	Own  *Answer // for the client whose action this is about, instead of Msg; nil for other entries
	At   int64   // position in the source's text after this entry
	From Party   // the owner that sent this text, to which it is not sent back; 0 for other entries
	Only Party   // the only client that gets this entry, besides those that may see everything; 0 means all
	Past int64   // it shows earlier text: only for takers that may see text from before this position; 0 means all
	Here bool    // not for other nodes, which make their own

	start int64 // bytes of all entries of this log before it; set by add
}

// Answer is a notification for the client that has sent an action, with what concerns
// nobody else.
type Answer struct {
	To  Party
	Msg []byte
}

// Piece is an envelope, with its serverSeq.
type Piece struct {
	Seq int64
	Msg []byte // the whole notification, ready for the wire
}

// to returns the notification in the encoding for the client of a connection.
func (e *Entry) to(o *Outbox) []byte {
	if e.Own != nil && e.Own.To == o.Party {
		return e.Own.Msg
	}
	if e.Old != nil && o.Old {
		return e.Old
	}
	return e.Msg
}

// isFor reports whether a subscriber is sent e.
func (e *Entry) isFor(s *Subscription) bool {
	return !e.isOf(s.out) && (e.Past == 0 || s.from < e.Past) && (e.Only == 0 || e.Only == s.out.Party || s.all)
}

// isOf reports whether e is the own text of a connection's client.
func (e *Entry) isOf(o *Outbox) bool { return e.From != 0 && e.From == o.Party }

// log keeps the newest envelopes of one channel, bounded in bytes and in number.
// Subscribers are cursors into it. An index counts entries since the channel was created,
// and only grows.
type log struct {
	limits *Limits

	kept  record.Queue[Entry]
	first int64 // index of the oldest entry kept
	next  int64 // index that the next entry will get
	total int64 // bytes of all entries ever added
	lost  int64 // serverSeq of the newest dropped envelope, or of the creation: all later envelopes are here
	need  int64 // entries from this index on may exceed the bounds, by up to the factor neededTimes; math.MaxInt64: none may
}

// largeEntry is the length, in bytes, from which on an envelope is dropped even if it is
// the only one in its log. An exit is shorter.
const largeEntry = 8 << 10

// neededTimes is the factor by which a log may exceed its bounds while the child waits
// for subscribers. The owner may still have 256 KiB in transit, which JSON escapes can
// make six times as long, and some subscribers may be nearly as far behind.
const neededTimes = 4

// add appends e and drops the oldest entries that no longer fit.
func (l *log) add(e Entry) {
	e.start = l.total
	l.total += int64(len(e.Msg))
	if e.Own != nil {
		l.total += int64(len(e.Own.Msg))
	}
	l.kept.Push(e)
	l.next++
	for l.next-l.first > 1 && l.over(1) && (l.first < l.need || l.over(neededTimes)) {
		l.dropFirst()
	}
}

// over reports whether the log holds more than so many times its bounds.
func (l *log) over(times int64) bool {
	return l.total-l.at(l.first).start > times*int64(l.limits.Bytes) || l.next-l.first > times*int64(l.limits.Count)
}

func (l *log) dropFirst() {
	l.lost = l.kept.At(0).Seq
	l.kept.Drop(1)
	l.first++
}

// at returns the entry with index i, which must be in [first, next).
func (l *log) at(i int64) *Entry { return l.kept.At(int(i - l.first)) }

// behind returns the number of bytes that a cursor at index i has not delivered yet.
func (l *log) behind(i int64) int64 {
	if i = max(i, l.first); i >= l.next {
		return 0
	}
	return l.total - l.at(i).start
}

// after returns the index of the first kept entry whose serverSeq is greater than seq.
// whole says that no entry after seq was dropped.
func (l *log) after(seq int64) (i int64, whole bool) {
	n := sort.Search(int(l.next-l.first), func(i int) bool { return l.at(l.first+int64(i)).Seq > seq })
	return l.first + int64(n), seq >= l.lost
}

// shrink drops the oldest entries until at most n bytes are left, or one entry that is
// not large, and frees their memory.
func (l *log) shrink(n int64) {
	for size := l.behind(l.first); size > n && (l.next-l.first > 1 || size > largeEntry); size = l.behind(l.first) {
		l.dropFirst()
	}
	l.kept.Shrink()
}

// Piece makes an envelope of an action.
func (o *Order) Piece(uri string, a ahp.Action, origin *ahp.Origin) Piece {
	seq := o.Next()
	return Piece{Seq: seq, Msg: ahp.AppendEnvelope(nil, uri, seq, origin, "", ahp.AppendAction(nil, a))}
}
