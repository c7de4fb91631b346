package host

import "sort"

// entry is one encoded envelope of a channel. It is immutable: any number of connections send the same bytes.
type entry struct {
	seq   int64
	msg   []byte  // the whole notification, ready for the wire
	old   []byte  // the same for clients up to 0.8 where they take it otherwise; nil = msg
	pos   int64   // stream position of the terminal's text after it
	from  *client // set on text that its owner sent: the owner does not get it back
	only  *client // set on what of a session is between the host and this client: nobody else gets it but who may see all
	start int64   // bytes of all entries of this log before it; set by add
}

// to is the notification as a client takes it.
func (e *entry) to(c *client) []byte {
	if e.old != nil && c.old() {
		return e.old
	}
	return e.msg
}

// chanLog keeps the newest envelopes of one channel, bounded in bytes and in number. Subscribers are cursors into it:
// an index counts entries from the channel's start and never goes back. Guarded by the host's mutex.
type chanLog struct {
	maxBytes, maxCount int

	ring  []entry // length is a power of two, or 0
	first int64   // index of the oldest entry kept
	next  int64   // index of the entry to come
	total int64   // bytes of all entries ever added
	lost  int64   // serverSeq up to which envelopes may be missing here: of the newest dropped, or of the creation
}

// add appends e and drops from the front what no longer fits.
func (l *chanLog) add(e entry) {
	e.start = l.total
	l.total += int64(len(e.msg))
	if int(l.next-l.first) == len(l.ring) {
		l.resize(max(4, 2*len(l.ring)))
	}
	*l.slot(l.next) = e
	l.next++
	for l.next-l.first > 1 && (l.total-l.slot(l.first).start > int64(l.maxBytes) || l.next-l.first > int64(l.maxCount)) {
		l.dropFirst()
	}
}

func (l *chanLog) dropFirst() {
	old := l.slot(l.first)
	l.lost = old.seq
	*old = entry{}
	l.first++
}

// resize gives the ring another size, a power of two with room for what is kept.
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

// behind is how many bytes a cursor at index i has still to deliver.
func (l *chanLog) behind(i int64) int64 {
	if i = max(i, l.first); i >= l.next {
		return 0
	}
	return l.total - l.slot(i).start
}

// after is the index of the first kept entry whose serverSeq is greater than seq. whole says whether nothing after seq
// has been dropped.
func (l *chanLog) after(seq int64) (i int64, whole bool) {
	n := sort.Search(int(l.next-l.first), func(i int) bool { return l.slot(l.first+int64(i)).seq > seq })
	return l.first + int64(n), seq >= l.lost
}

// channel is the root, one terminal, a session or its chat: a log of envelopes and who subscribes to it. Guarded by the host's mutex.
type channel struct {
	host *Host // set once
	uri  string
	term *terminal // nil for the others
	log  chanLog
	subs []*subscription

	session *Session // nil for the others
	ended   bool     // nothing will be added; subscriptions end when they have delivered what there is
}

func (h *Host) newChannel(uri string) *channel {
	return &channel{host: h, uri: uri, log: chanLog{maxBytes: h.opts.LogBytes, maxCount: h.opts.LogCount, lost: h.seq}}
}

// addLocked logs an envelope and lets the subscribers know.
func (ch *channel) addLocked(e entry) {
	ch.log.add(e)
	if t := ch.term; t != nil {
		ch.host.recordLocked(t)
		if t.moved != nil {
			close(t.moved)
			t.moved = nil
		}
	}
	for _, s := range ch.subs {
		s.noticeLocked()
	}
}

// endLocked says that nothing more will come.
func (ch *channel) endLocked() {
	ch.ended = true
	if ch.term != nil {
		ch.host.weighLocked(ch.term)
	}
	for _, s := range ch.subs {
		s.noticeLocked()
	}
}
