// Package lines cuts a stream of JSON-RPC messages into lines, one message each, as MCP
// and ACP send them over standard input and output.
package lines

import (
	"bytes"
	"io"
)

const (
	readSize = 64 << 10 // bytes asked of the system at a time, at least; also how much longer than the limit a whole line may be
	maxEmpty = 100      // reads in a row that give nothing: the reader is broken
)

// Reader cuts a stream into lines. A line stays where it was read, so that passing it on
// copies nothing. It is for one goroutine.
type Reader struct {
	r     io.Reader
	limit int
	keep  int // bytes; a larger buffer is given back after its line
	buf   []byte
	start int // of the bytes not handed out
	seen  int // no newline in buf[start:seen]
	end   int // of the bytes read
	long  bool
	err   error
}

// NewReader returns a Reader of r. A line of up to limit bytes, its end included, comes
// whole. So does a longer one of at most 64 KiB more that happens to be read at once; any
// other comes in pieces.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: r, limit: limit, keep: max(2*readSize, limit/16)}
}

// Next returns the next line with its end. If the stream ends within a line, Next returns
// that line as a whole one, and then the stream's error, such as io.EOF. Of a line that
// is too long it returns pieces, with whole false. data is valid until the next call.
func (l *Reader) Next() (data []byte, whole bool, err error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:l.end], '\n'); i >= 0 {
			data, whole = l.take(l.seen+i+1, true)
			return data, whole, nil
		}
		l.seen = l.end
		switch {
		case l.err != nil && l.start == l.end:
			return nil, false, l.err
		case l.err != nil:
			data, whole = l.take(l.end, true)
			return data, whole, nil
		case l.end-l.start >= l.limit:
			l.long = true
		}
		if l.long && l.end > l.start {
			data, whole = l.take(l.end, false)
			return data, whole, nil
		}
		l.fill()
	}
}

// take hands out the bytes before end.
func (l *Reader) take(end int, last bool) (data []byte, whole bool) {
	data, whole = l.buf[l.start:end:end], last && !l.long
	l.start, l.seen = end, end
	if last {
		l.long = false
	}
	return data, whole
}

// fill reads once, making room first.
func (l *Reader) fill() {
	if l.start == l.end {
		l.start, l.seen, l.end = 0, 0, 0
		if len(l.buf) > l.keep {
			l.buf = nil
		}
	}
	if len(l.buf)-l.end < readSize {
		l.makeRoom()
	}
	room := l.buf[l.end:min(len(l.buf), l.start+l.limit+readSize)]
	for range maxEmpty {
		n, err := l.r.Read(room)
		l.end += n
		if n > 0 || err != nil {
			l.err = err
			return
		}
	}
	l.err = io.ErrNoProgress
}

// makeRoom moves the remaining bytes to the front, of a larger buffer if needed.
func (l *Reader) makeRoom() {
	left := l.end - l.start
	buf := l.buf
	if left+readSize > len(buf)/2 {
		buf = make([]byte, max(2*len(buf), 2*readSize, left+readSize))
	}
	copy(buf, l.buf[l.start:l.end])
	l.buf, l.seen, l.start, l.end = buf, l.seen-l.start, 0, left
}
