package acp

import (
	"bytes"
	"io"
)

const (
	// maxInspect bounds the lines that are looked at, in bytes; the largest
	// message of the official SDK is half of it. A longer one passes in pieces,
	// unseen.
	maxInspect = 64 << 20
	readSize   = 64 << 10 // bytes asked of the system at a time, at least
	keepSize   = 4 << 20  // a buffer that grew beyond is given back after its line
	maxEmpty   = 100      // reads in a row that give nothing: the reader is broken
)

// piece is a line with its end, or a part of one that is too long to be kept.
type piece struct {
	data  []byte // valid until the next call
	whole bool   // a line, or what the stream ended with
}

// lineReader cuts a stream into lines. A line stays where it was read, so
// that passing it on copies nothing.
type lineReader struct {
	r     io.Reader
	limit int // maxInspect; less in tests
	buf   []byte
	start int // of what was not handed out
	seen  int // no newline in buf[start:seen]
	end   int // of what was read
	long  bool
	err   error
}

// next returns the next piece, or the error that ended the stream. A stream
// that ends within a line gives that first.
func (l *lineReader) next() (piece, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:l.end], '\n'); i >= 0 {
			return l.take(l.seen+i+1, true), nil
		}
		l.seen = l.end
		switch {
		case l.err != nil && l.start == l.end:
			return piece{}, l.err
		case l.err != nil:
			return l.take(l.end, true), nil
		case l.end-l.start >= l.limit:
			l.long = true
		}
		if l.long && l.end > l.start {
			return l.take(l.end, false), nil
		}
		l.fill()
	}
}

// take hands out what lies before end.
func (l *lineReader) take(end int, last bool) piece {
	p := piece{data: l.buf[l.start:end:end], whole: last && !l.long}
	l.start, l.seen = end, end
	if last {
		l.long = false
	}
	return p
}

// fill reads once, making room first.
func (l *lineReader) fill() {
	if l.start == l.end {
		l.start, l.seen, l.end = 0, 0, 0
		if len(l.buf) > keepSize {
			l.buf = nil
		}
	}
	if len(l.buf)-l.end < readSize {
		l.makeRoom()
	}
	for range maxEmpty {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		if n > 0 || err != nil {
			l.err = err
			return
		}
	}
	l.err = io.ErrNoProgress
}

// makeRoom moves what is left to the front, of a larger buffer if need be.
func (l *lineReader) makeRoom() {
	left := l.end - l.start
	buf := l.buf
	if left+readSize > len(buf)/2 {
		buf = make([]byte, max(2*len(buf), 2*readSize, left+readSize))
	}
	copy(buf, l.buf[l.start:l.end])
	l.buf, l.seen, l.start, l.end = buf, l.seen-l.start, 0, left
}
