package redact

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"sort"
	"strconv"

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

// joiner takes control sequences out of a stream, so that a secret is found although
// something was drawn in its middle. A sequence that neither prints nor moves the cursor
// (colours, erasing, modes) leaves nothing, a move in the line leaves symbols, and any
// other sequence leaves its ESC, which is never part of a secret. The content of control
// strings stays, because a title may contain a secret.
//
// It is a pure state machine. Offsets of joined text begin as those of the stream, and
// fall behind with each sequence.
type joiner struct {
	off     int64 // of joined text, after all consumed bytes
	raw     int64 // of the stream, after all consumed bytes
	dropped int64 // bytes of sequences that were taken out
	seams   []seam
	buf     []byte

	// Offsets in the stream, since clear was called. Between them there are only complete
	// control sequences that pass with any parameters.
	plainFrom, plainTo int64

	seq []byte // the sequence that is pending, from its ESC on
}

// seam says that joined text from off on, up to the next seam, is in the stream at raw.
type seam struct {
	off, raw int64
	fixed    bool // never masked, because it ends a sequence
}

func newJoiner(off int64) joiner {
	return joiner{off: off, raw: off, seams: []seam{{off: off, raw: off}}}
}

// next joins the first n bytes of p. joined is a part of p, or is overwritten by the next
// call. It ends at the latest where another maxDropped bytes of sequences have been
// removed.
func (j *joiner) next(p []byte) (joined []byte, n int) {
	if len(j.seq) == 0 {
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
		if len(j.seq) > 0 {
			ended, again := j.step(p[n])
			if !again {
				n++
			}
			if ended {
				k = j.leave(j.seq, !again, k, base+int64(n))
				j.seq = j.seq[:0]
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
		end := escape.Complete(p[n:])
		if end == 0 || end > maxSequence || !controls[prefixIndex(p[n+2])][p[n+end-1]] {
			j.plainTo = min(j.plainTo, base+int64(n))
		}
		if end > 0 && end <= maxSequence {
			k = j.leave(p[n:n+end], true, k, base+int64(n+end))
			n += end
			continue
		}
		j.seq = append(j.seq, esc)
		n++
	}
	j.raw, j.off = base+int64(n), j.off+int64(k)
	return out[:k], n
}

// leave takes out a sequence that ends in front of the stream's offset end; without its
// final byte it is incomplete. leave puts the replacement behind k bytes of joined text,
// and returns their new number.
func (j *joiner) leave(seq []byte, complete bool, k int, end int64) int {
	symbol, columns, kept := byte(esc), 1, byte(0)
	if complete {
		symbol, columns, kept = left(seq)
	}
	if symbol != 0 {
		j.seam(j.off+int64(k), end-int64(len(seq)))
		for range columns {
			j.buf[k] = symbol
			k++
		}
		if kept != 0 {
			j.seams = append(j.seams, seam{j.off + int64(k), end - 1, true})
			j.buf[k] = kept
			k++
		}
	}
	j.seam(j.off+int64(k), end)
	j.dropped += int64(len(seq))
	j.plainFrom = min(j.plainFrom, end)
	return k
}

// clear resets plainFrom and plainTo.
func (j *joiner) clear() {
	j.plainFrom, j.plainTo = math.MaxInt64, math.MaxInt64
	if len(j.seq) == 0 {
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

// plainEnd returns the length of the control sequence at the start of p if it is short,
// complete, and leaves nothing, as nearly all are; otherwise 0. left says the same, more
// slowly.
func plainEnd(p []byte) int {
	if len(p) > 1+word {
		// The first byte with another upper half ends the parameters.
		v := binary.LittleEndian.Uint64(p[1:]) ^ ('[' | 0x30*(ones-1))
		if i := bits.TrailingZeros64(v&(0xf0*ones&^0xff|0xff)) / 8; i >= 2 && i < word && byte(v>>8) < 0x0c && quiet[p[1+i]] {
			return i + 2
		}
	}
	return 0
}

// quiet has the final bytes of control sequences without a prefix that neither print nor
// move the cursor: colours, erasing, repeating, and saving the cursor's place. bare has
// those that are usual without a parameter, and moves; quietPrivate those with a prefix:
// modes, erasing, keyboards.
var quiet, bare, quietPrivate = finals("mKJXbhls"), finals("mKJXCD"), finals("hlmuJK")

// step takes a byte of the pending sequence. ended means that the sequence has ended with
// this byte, and again that it had ended before it, incomplete.
func (j *joiner) step(c byte) (ended, again bool) {
	if c < 0x20 || c >= del || len(j.seq) >= maxSequence {
		return true, true
	}
	j.seq = append(j.seq, c)
	return c >= 0x40 && !(len(j.seq) == 2 && c == '[') || c >= 0x30 && j.seq[1] != '[', false
}

// left returns what a complete sequence leaves: a symbol, 0 for nothing, how often, and
// the final byte if it is the only one behind the introducer: a secret behind half a
// sequence may begin with it.
func left(seq []byte) (symbol byte, columns int, kept byte) {
	before, final := seq[len(seq)-2], seq[len(seq)-1]
	if seq[1] != '[' {
		switch {
		case before >= '(' && before <= '/', before == esc && (final == '=' || final == '>' || final == '7'):
			return 0, 0, 0 // a character set, as terminfo resets colours with one; the keypad; the cursor's place is kept
		case before == esc && isWord(final):
			return esc, 1, final
		}
		return esc, 1, 0
	}
	params, private, inter := seq[2:len(seq)-1], false, byte(0)
	for _, c := range params {
		if c < '0' {
			inter = c
		}
		private = private || c >= '<'
	}
	switch {
	case len(params) == 0 && isWord(final) && !bare[final]:
		return esc, 1, final
	case inter == 0 && (!private && quiet[final] || private && quietPrivate[final]), inter == ' ' && final == 'q':
		return 0, 0, 0
	case inter == 0 && !private && (final == 'C' || final == 'a' || final == 'D'):
		n, _ := strconv.Atoi(string(params[bytes.LastIndexAny(params, ";:")+1:]))
		if symbol = forward; final == 'D' {
			symbol = backward
		}
		if n <= maxMove {
			return symbol, max(n, 1), 0
		}
	}
	return esc, 1, 0
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
