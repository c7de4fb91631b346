package problems

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"tether/internal/escape"
)

// maxLine bounds the examined part of a line, in bytes with its escape sequences. The rest matches nothing.
const maxLine = 8 << 10

// farAway is more rows than a screen has.
const farAway = 1 << 16

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

	row   int    // of the line that is yielded, counted from anywhere; moves of the cursor change it
	cells []rune // of a line with escape sequences, see clean
	at    int    // where the cursor is among them
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
				s.row += moved(s.partial)
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
	} else {
		s.clean(line, start, end)
	}
	s.row++
}

// moved is by how many rows text that is dropped has moved the cursor down.
func moved(text []byte) (rows int) {
	if bytes.IndexByte(text, 0x1b) < 0 {
		return 0
	}
	var scanner escape.Scanner
	for _, c := range text {
		if scanner.Outside() && c != 0x1b {
			continue
		}
		if scanner.Next(c) == escape.Control {
			rows += down(c, scanner.Params())
		}
	}
	return rows
}

// down is by how many rows a control sequence moves the cursor down. A move to a row of
// the screen leads far away from all rows before.
func down(final byte, params []byte) int {
	switch final {
	case 'A', 'F':
		return -count(params)
	case 'B', 'E':
		return count(params)
	case 'H', 'f', 'd':
		return farAway
	}
	return 0
}

// clean yields the text of a line with escape sequences as a person sees it. Where the cursor moves to another line, a
// line ends.
func (s *splitter) clean(line []byte, start, end int64) {
	var scanner escape.Scanner
	s.cells, s.at = s.cells[:0], 0
	split := false
	for i := 0; i < len(line); {
		if scanner.Outside() && line[i] != 0x1b {
			r, n := utf8.DecodeRune(line[i:])
			s.put(r)
			i += n
			continue
		}
		c := line[i]
		i++
		switch scanner.Next(c) {
		case escape.Text: // a character after ESC
			s.put(rune(c))
		case escape.Control:
			n := count(scanner.Params())
			switch c {
			case 'C':
				s.move(s.at + min(n, maxForward))
			case 'D':
				s.move(s.at - n)
			case 'G', '`':
				s.move(n - 1)
			case 'K':
				if s.at == 0 && len(s.cells) > 0 && string(scanner.Params()) != "1" {
					s.yieldCells(start, end) // jest removes the line with which a round begins at once
				}
				s.erase(scanner.Params())
			case 'A', 'B', 'E', 'F', 'H', 'J', 'f', 'd':
				split = true
				if len(s.cells) > 0 {
					s.yieldCells(start, end)
				}
				s.row += down(c, scanner.Params())
			}
		}
	}
	if len(s.cells) > 0 || !split {
		s.yieldCells(start, end)
	}
}

// put writes a character at the cursor.
func (s *splitter) put(r rune) {
	switch {
	case r == '\b':
		s.at = max(s.at-1, 0)
		return
	case s.at < len(s.cells):
		s.cells[s.at] = r
	default:
		s.cells = append(s.cells, r)
	}
	s.at++
}

// move sets the cursor. Cells that were never written are blanks.
func (s *splitter) move(to int) {
	s.at = min(max(to, 0), maxLine)
	for len(s.cells) < s.at {
		s.cells = append(s.cells, ' ')
	}
}

// erase is EL: to the end of the line, to its beginning, or all of it.
func (s *splitter) erase(params []byte) {
	switch string(params) {
	case "", "0":
		s.cells = s.cells[:min(s.at, len(s.cells))]
	case "1", "2":
		for i := range s.cells[:min(s.at+1, len(s.cells))] {
			s.cells[i] = ' '
		}
		if params[0] == '2' {
			s.cells = s.cells[:min(s.at, len(s.cells))]
		}
	}
}

// yieldCells ends a line.
func (s *splitter) yieldCells(start, end int64) {
	s.buf = s.buf[:0]
	for _, r := range s.cells {
		s.buf = utf8.AppendRune(s.buf, r)
	}
	s.cells, s.at = s.cells[:0], 0
	s.yield(s.buf, start, end)
}

// count is a sequence's number, 1 if it has none.
func count(params []byte) int {
	n, err := strconv.Atoi(string(params))
	if err != nil {
		return 1
	}
	return min(max(n, 1), maxLine)
}
