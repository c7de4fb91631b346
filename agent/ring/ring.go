// Package ring keeps the newest bytes of a stream under absolute offsets.
//
// A [Log] is a circular buffer that grows with its content up to a bound and then drops
// the oldest bytes. Offsets count from the start of the stream and are never reset, so a
// consumer is nothing but an offset: it pulls with [Log.ReadAt] and learns from
// [Log.Start] that it came too late. The package does no locking; the log belongs to one
// terminal and lives under its mutex.
package ring

import "math/bits"

// minSize is the first allocation of a log in bytes: enough for an idle shell with its
// prompt.
const minSize = 4 << 10

// A Log holds the bytes [Start, End) of a stream. The zero value is not usable; call
// [New]. It is not safe for concurrent use.
type Log struct {
	buf   []byte // length is a power of two; byte at offset o lives at o&(len-1)
	start int64
	end   int64
	limit int // bound of len(buf), a power of two
}

// New returns an empty log that keeps at most limit bytes, rounded up to a power of two
// and to at least 4 KiB. It takes no memory before the first [Log.Append].
func New(limit int) *Log {
	return &Log{limit: ceilPow2(max(limit, minSize))}
}

// NewAt is [New] for a stream whose bytes before offset are gone already, such as an
// adopted log that was trimmed.
func NewAt(limit int, offset int64) *Log {
	l := New(limit)
	l.start, l.end = offset, offset
	return l
}

// Start returns the offset of the oldest retained byte.
func (l *Log) Start() int64 { return l.start }

// End returns the offset after the newest byte: the length of the stream.
func (l *Log) End() int64 { return l.end }

// Limit returns the bound in bytes.
func (l *Log) Limit() int { return l.limit }

// Cap returns the memory that is taken, in bytes.
func (l *Log) Cap() int { return len(l.buf) }

// SetLimit changes the bound, by the rules of [New]. Bytes that no longer fit are dropped
// from the front and their memory is given back; a higher bound takes memory only as the
// log grows.
func (l *Log) SetLimit(limit int) {
	l.limit = ceilPow2(max(limit, minSize))
	if len(l.buf) <= l.limit {
		return
	}
	l.Trim(l.end - int64(l.limit))
	l.resize(l.limit)
}

// Append adds p at End. Bytes that no longer fit are dropped from the front; of a p
// longer than the limit only its tail is retained. p is copied.
func (l *Log) Append(p []byte) {
	if len(p) == 0 {
		return // there may be no buffer yet
	}
	if skip := len(p) - l.limit; skip > 0 {
		p = p[skip:]
		l.end += int64(skip)
		l.start = l.end
	}
	l.grow(int(l.end-l.start) + len(p))
	l.start = max(l.start, l.end+int64(len(p))-int64(len(l.buf)))
	at := int(l.end) & (len(l.buf) - 1)
	n := copy(l.buf[at:], p)
	copy(l.buf, p[n:])
	l.end += int64(len(p))
}

// Trim drops the bytes before offset. An offset outside [Start, End] is clamped. Memory
// is kept for later bytes.
func (l *Log) Trim(offset int64) {
	l.start = min(max(offset, l.start), l.end)
}

// ReadAt copies bytes from offset on into p and returns their number. An offset outside
// [Start, End] gives 0.
func (l *Log) ReadAt(p []byte, offset int64) int {
	a, b := l.Slices(offset, len(p))
	n := copy(p, a)
	return n + copy(p[n:], b)
}

// Slices returns up to n bytes from offset on without copying, in two pieces because the
// buffer wraps. They are valid until the next Append.
func (l *Log) Slices(offset int64, n int) (a, b []byte) {
	if offset < l.start || offset >= l.end || n <= 0 {
		return nil, nil
	}
	n = int(min(int64(n), l.end-offset))
	at := int(offset) & (len(l.buf) - 1)
	if first := len(l.buf) - at; n > first {
		return l.buf[at:], l.buf[:n-first]
	}
	return l.buf[at : at+n], nil
}

// grow makes room for need retained bytes, as far as the limit allows.
func (l *Log) grow(need int) {
	if need <= len(l.buf) || len(l.buf) >= l.limit {
		return
	}
	l.resize(min(max(ceilPow2(need), minSize), l.limit))
}

// resize moves the retained bytes, which fit, to a buffer of size bytes.
func (l *Log) resize(size int) {
	next := make([]byte, size)
	a, b := l.Slices(l.start, len(l.buf))
	for o, piece := l.start, a; len(piece) > 0; piece, b = b, nil {
		at := int(o) & (size - 1)
		n := copy(next[at:], piece)
		copy(next, piece[n:])
		o += int64(len(piece))
	}
	l.buf = next
}

func ceilPow2(n int) int {
	return 1 << bits.Len(uint(n-1))
}
