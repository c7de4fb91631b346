package redact

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"sort"

	"tether/internal/escape"
)

const (
	word = 8                  // bytes that are read together, as one number
	ones = 0x0101010101010101 // times a byte: a word of that byte
)

// Symbols of joined text: moves by one column. No character in UTF-8 has these bytes.
const (
	forward  = 0xff
	backward = 0xfe
)

const maxMove = 16 // columns; a wider gap is the layout of a table, and ends a secret

const (
	joinedPiece = 4 << 10  // bytes of joined text in one piece
	maxSequence = 1 << 10  // bytes of a control sequence; a longer one is taken for text
	maxDropped  = 64 << 10 // bytes of sequences after which a piece ends: see redactor.feed
)

// joiner takes control sequences out of a stream, so that a secret is found although something was drawn in its middle. A sequence that
// neither prints nor moves the cursor (colours, erasing, modes) leaves nothing, a move in the line leaves symbols, and any other sequence
// leaves its ESC, which is never part of a secret. The content of control strings stays, because a title may contain a secret.
//
// It is a pure state machine. Offsets of joined text begin as those of the stream, and fall behind with each sequence.
type joiner struct {
	off     int64 // of joined text, after all consumed bytes
	raw     int64 // of the stream, after all consumed bytes
	dropped int64 // bytes of sequences that were taken out
	seams   []seam
	buf     []byte

	// Offsets in the stream, since clear was called. Between them there are only complete
	// control sequences that pass with any parameters.
	plainFrom, plainTo int64

	// The sequence that is pending.
	within joinState
	begun  int64 // where its ESC is in the stream
	prefix byte  // of a control sequence, 0: none
	inter  byte  // the last intermediate byte, 0: none
	param  int   // the last parameter
	kept   byte  // its last byte, if it is the only one behind the introducer: a secret behind half a sequence may begin with it
}

type joinState uint8

const (
	joinText    joinState = iota
	joinEscape            // behind ESC
	joinInter             // behind its intermediate bytes
	joinControl           // behind ESC [
)

// seam says that joined text from off on, up to the next seam, is in the stream at raw.
type seam struct {
	off, raw int64
	fixed    bool // never masked, because it ends a sequence
}

func newJoiner(off int64) joiner {
	return joiner{off: off, raw: off, seams: []seam{{off: off, raw: off}}}
}

// next joins the first n bytes of p. joined is a part of p, or is overwritten by the next call. It ends at the latest where another
// maxDropped bytes of sequences have been removed.
func (j *joiner) next(p []byte) (joined []byte, n int) {
	if j.within == joinText {
		n = bytes.IndexByte(p, esc)
		if n < 0 {
			n = len(p)
		}
		if n == len(p) || n >= joinedPiece/4 { // not worth a copy
			j.off, j.raw = j.off+int64(n), j.raw+int64(n)
			return p[:n], n
		}
	}
	if j.buf == nil {
		j.buf = make([]byte, joinedPiece+word+maxMove+1)
	}
	out, base, until := j.buf, j.raw, j.dropped/maxDropped
	k, n := 0, 0
	for n < len(p) && k < joinedPiece && j.dropped/maxDropped == until {
		if j.within != joinText {
			symbol, ended, again := j.step(p[n], base+int64(n))
			if !again {
				n++
			}
			if ended {
				k = j.leave(symbol, k, base+int64(n))
			}
			continue
		}
		if p[n] != esc {
			if n > len(p)-word {
				out[k] = p[n]
				n, k = n+1, k+1
				continue
			}
			x := binary.LittleEndian.Uint64(p[n : n+word])
			binary.LittleEndian.PutUint64(out[k:k+word], x)
			x ^= esc * ones
			zero := (x - ones) &^ x & (0x80 * ones) // its lowest bit tells where the first ESC is
			skip := min(bits.TrailingZeros64(zero)/8, word)
			n, k = n+skip, k+skip
			continue
		}
		if end := plainEnd(p[n:]); end > 0 {
			n += end
			j.dropped += int64(end)
			j.seam(j.off+int64(k), base+int64(n))
			continue
		}
		j.begun = base + int64(n)
		if end := escape.Complete(p[n:]); end > len("\x1b[m") && end <= maxSequence && escapeLeft[p[n+end-1]] && prefixIndex(p[n+2]) == 0 {
			n, j.kept = n+end, 0
			k = j.leave(esc, k, base+int64(n))
			continue
		}
		j.plainTo = min(j.plainTo, j.begun)
		j.within, j.prefix, j.inter, j.param, j.kept = joinEscape, 0, 0, 0, 0
		n++
	}
	j.raw, j.off = base+int64(n), j.off+int64(k)
	return out[:k], n
}

// leave ends the pending sequence in front of the stream's offset end. It puts the replacement behind k bytes of joined text, and returns
// their new number.
func (j *joiner) leave(symbol byte, k int, end int64) int {
	if symbol != 0 {
		j.seam(j.off+int64(k), j.begun)
		columns := 1
		if symbol == forward || symbol == backward {
			columns = max(j.param, 1)
		}
		for range columns {
			j.buf[k] = symbol
			k++
		}
		if j.kept != 0 {
			j.seams = append(j.seams, seam{j.off + int64(k), end - 1, true})
			j.buf[k] = j.kept
			k++
		}
	}
	j.seam(j.off+int64(k), end)
	j.dropped += end - j.begun
	j.within = joinText
	j.plainFrom = min(j.plainFrom, end)
	return k
}

// clear resets plainFrom and plainTo.
func (j *joiner) clear() {
	j.plainFrom, j.plainTo = math.MaxInt64, math.MaxInt64
	if j.within == joinText {
		j.plainFrom = j.raw
	}
}

// seam records that joined text from off on is in the stream at raw.
func (j *joiner) seam(off, raw int64) {
	if last := &j.seams[len(j.seams)-1]; last.off == off {
		last.raw = raw
		return
	}
	j.seams = append(j.seams, seam{off: off, raw: raw})
}

// plainEnd returns the length of the control sequence at the start of p if it is complete
// and leaves nothing, as nearly all are; otherwise 0.
func plainEnd(p []byte) int {
	if len(p) > 1+word {
		// Most parameters are short: the first byte with another upper half ends them.
		v := binary.LittleEndian.Uint64(p[1:]) ^ ('[' | 0x30*(ones-1))
		if i := bits.TrailingZeros64(v&(0xf0*ones&^0xff|0xff)) / 8; i >= 2 && i < word && byte(v>>8) < 0x0c && quiet[p[1+i]] {
			return i + 2
		}
	}
	n := escape.Complete(p)
	if n == 0 || n > maxSequence || prefixIndex(p[2]) > 0 || !quiet[p[n-1]] || n == 3 && !bare[p[2]] {
		return 0
	}
	return n
}

// quiet has the final bytes of control sequences without a prefix that neither print nor move the cursor: colours, erasing, repeating, and
// saving the cursor's place. bare has those that are usual without a parameter, and moves; quietPrivate those with a prefix: modes,
// erasing, keyboards.
var quiet, bare, quietPrivate = finals("mKJXbhls"), finals("mKJXCD"), finals("hlmuJK")

// escapeLeft has the final bytes of harmless sequences without a prefix that leave an ESC,
// whatever their parameters are.
var escapeLeft = func() (t [256]bool) {
	for c, pass := range controls[0] {
		t[c] = pass && !quiet[c] && c != 'C' && c != 'a' && c != 'D'
	}
	return t
}()

// step takes a byte of the pending sequence, at an offset in the stream. ended means that the sequence has ended with this byte, and symbol
// is what it leaves, 0 for nothing. again means that it had ended before this byte.
func (j *joiner) step(c byte, at int64) (symbol byte, ended, again bool) {
	switch {
	case c == esc, c < 0x20, c >= del, at-j.begun >= maxSequence:
		return esc, true, true
	case j.within == joinEscape && c == '[':
		j.within = joinControl
		return 0, false, false
	case j.within == joinControl:
		return j.control(c, at == j.begun+2)
	case c < 0x30:
		j.within, j.inter = joinInter, c
		return 0, false, false
	case j.within == joinInter && j.inter >= '(' && j.inter <= '/', j.within == joinEscape && (c == '=' || c == '>' || c == '7'):
		return 0, true, false // a character set, as terminfo resets colours with one; the keypad; the cursor's place is kept
	case j.within == joinEscape && isWord(c):
		j.kept = c
	}
	return esc, true, false
}

// control is step behind ESC [; first means that c follows directly.
func (j *joiner) control(c byte, first bool) (symbol byte, ended, again bool) {
	switch {
	case c >= '<' && c <= '?':
		j.prefix = c
	case c >= '0' && c <= '9':
		j.param = min(j.param*10+int(c-'0'), 1<<20)
	case c == ';' || c == ':':
		j.param = 0
	case c < 0x30:
		j.inter = c
	case first && isWord(c) && !bare[c]:
		j.kept = c
		return esc, true, false
	case j.inter == 0 && (j.prefix == 0 && quiet[c] || j.prefix != 0 && quietPrivate[c]), j.inter == ' ' && c == 'q':
		return 0, true, false
	case j.inter == 0 && j.prefix == 0 && (c == 'C' || c == 'a') && j.param <= maxMove:
		return forward, true, false
	case j.inter == 0 && j.prefix == 0 && c == 'D' && j.param <= maxMove:
		return backward, true, false
	default:
		return esc, true, false
	}
	return 0, false, false
}

// at returns the index of the seam that joined text at off belongs to.
func (j *joiner) at(off int64) int {
	if n := len(j.seams) - 1; j.seams[n].off <= off {
		return n
	}
	return sort.Search(len(j.seams), func(i int) bool { return j.seams[i].off > off }) - 1
}

// rawAt returns the stream's offset of joined text at off.
func (j *joiner) rawAt(off int64) int64 {
	i := j.at(off)
	s := j.seams[i]
	raw := s.raw + off - s.off
	if i+1 < len(j.seams) {
		raw = min(raw, j.seams[i+1].raw) // symbols may be more than the bytes they stand for
	}
	return raw
}

// isSeam reports whether something was removed in front of joined text at off.
func (j *joiner) isSeam(off int64) bool { return j.seams[j.at(off)].off == off }

// forget drops the seams that joined text from off on does not need.
func (j *joiner) forget(off int64) {
	if n := j.at(off); n > 0 {
		j.seams = j.seams[:copy(j.seams, j.seams[n:])]
	}
}
