package problems

import (
	"bytes"
	"strconv"

	"tether/internal/escape"
)

// maxLine bounds the examined part of a line, in bytes with its escape sequences. The rest matches nothing.
const maxLine = 8 << 10

// maxForward bounds the blanks that stand for a move of the cursor to the right.
const maxForward = 500

// splitter divides a stream, fed in pieces, into lines. Text that a carriage return overwrites is dropped: of a progress bar the last state
// counts.
type splitter struct {
	partial []byte // the line that has begun; of a line longer than maxLine, the beginning
	start   int64  // its offset
	open    bool   // a line has begun
	cr      bool   // the last byte was a carriage return
	yield   func(line []byte, start, end int64)
	buf     []byte
}

// write takes bytes whose first has the offset at.
func (s *splitter) write(at int64, p []byte) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		rest := p[len(p):]
		piece, ends := p, n >= 0
		if ends {
			piece, rest = p[:n], p[n+1:]
		}
		s.piece(at, piece)
		at += int64(len(p) - len(rest))
		if ends {
			if !s.open {
				s.start = at - int64(n+1)
			}
			s.finish(at)
		}
		p = rest
	}
}

// piece takes bytes of one line, without its end.
func (s *splitter) piece(at int64, p []byte) {
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\r')
		text := p
		if n >= 0 {
			text = p[:n]
		}
		if len(text) > 0 {
			if s.cr || !s.open {
				s.partial, s.start, s.open, s.cr = s.partial[:0], at, true, false
			}
			s.partial = append(s.partial, text[:min(len(text), maxLine-len(s.partial))]...)
		}
		if n < 0 {
			return
		}
		s.cr = true
		if !s.open {
			s.start, s.open = at, true
		}
		at += int64(n + 1)
		p = p[n+1:]
	}
}

// finish ends the line that has begun before the offset end.
func (s *splitter) finish(end int64) {
	start := s.start
	line := s.partial
	s.partial, s.open, s.cr = s.partial[:0], false, false
	if bytes.IndexByte(line, 0x1b) < 0 && bytes.IndexByte(line, '\b') < 0 {
		s.yield(line, start, end)
		return
	}
	s.clean(line, start, end)
}

// clean yields the text of a line with escape sequences. Where the cursor moves to another line, a line ends.
func (s *splitter) clean(line []byte, start, end int64) {
	var scanner escape.Scanner
	s.buf = s.buf[:0]
	split := false
	for i := 0; i < len(line); i++ {
		if scanner.Outside() {
			if i = s.text(line, i); i == len(line) {
				break
			}
		}
		switch c := line[i]; scanner.Next(c) {
		case escape.Text: // a character after ESC
			s.buf = append(s.buf, c)
		case escape.Control:
			switch c {
			case 'C':
				s.forward(scanner.Params())
			case 'A', 'B', 'E', 'F', 'H', 'J', 'f', 'd':
				split = true
				if len(s.buf) > 0 {
					s.yield(s.buf, start, end)
					s.buf = s.buf[:0]
				}
			}
		}
	}
	if len(s.buf) > 0 || !split {
		s.yield(s.buf, start, end)
	}
}

// text takes the text from i on, to the next escape sequence, and returns where that begins.
func (s *splitter) text(line []byte, i int) int {
	end := bytes.IndexByte(line[i:], 0x1b)
	if end < 0 {
		end = len(line) - i
	}
	text := line[i : i+end]
	for {
		n := bytes.IndexByte(text, '\b')
		if n < 0 {
			break
		}
		s.buf = append(s.buf, text[:n]...)
		s.buf = s.buf[:max(len(s.buf)-1, 0)]
		text = text[n+1:]
	}
	s.buf = append(s.buf, text...)
	return i + end
}

// forward writes blanks for cells that the cursor skips; Windows' console writes runs of blanks so.
func (s *splitter) forward(params []byte) {
	n, err := strconv.Atoi(string(params))
	if err != nil || n < 1 {
		n = 1
	}
	for range min(n, maxForward) {
		s.buf = append(s.buf, ' ')
	}
}
