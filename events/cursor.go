package events

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
)

// place is a position in a terminal's log.
//
//   - lines: off is the beginning of the first line that was not reported. aux is the end
//     of the part of that line that was reported because it stood still; 0: none.
//   - commands: off is the offset up to which ends of commands were examined; aux is how
//     many of the ends at off were examined.
//   - exits: off is 1 once the exit was reported.
type place struct{ off, aux int64 }

func (p place) before(q place) bool { return p.off < q.off || p.off == q.off && p.aux < q.aux }

// position is the content of a cursor: the places of terminals, or a place in a journal.
type position struct {
	places map[string]place // by terminal
	epoch  uint32           // of the journal; 0: none
	seq    uint64
}

const (
	cursorVersion = 1
	maxCursor     = 32 << 10 // bytes
	maxPlaces     = 512      // terminals in a cursor; further ones start at the beginning of their log
	maxID         = 64       // bytes of a terminal's id
)

var cursorText = base64.RawURLEncoding

// encode returns the cursor for a position of the subscription with that hash.
func (p *position) encode(hash uint32) string {
	b := binary.BigEndian.AppendUint32([]byte{cursorVersion}, hash)
	b = binary.BigEndian.AppendUint32(b, p.epoch)
	if p.epoch != 0 {
		return cursorText.EncodeToString(binary.AppendUvarint(b, p.seq))
	}
	ids := slices.Sorted(maps.Keys(p.places))
	for _, id := range ids[:min(len(ids), maxPlaces)] {
		at := p.places[id]
		b = append(append(b, byte(len(id))), id...)
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(at.off)), uint64(at.aux))
	}
	return cursorText.EncodeToString(b)
}

// decodeCursor decodes a cursor of the subscription with that hash. ok is false for the
// cursor of another subscription or version, and for anything else.
func decodeCursor(text string, hash uint32) (p position, ok bool) {
	if len(text) > maxCursor {
		return p, false
	}
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) < 9 || b[0] != cursorVersion || binary.BigEndian.Uint32(b[1:]) != hash {
		return p, false
	}
	p.epoch, b = binary.BigEndian.Uint32(b[5:]), b[9:]
	if p.epoch != 0 {
		var n int
		p.seq, n = binary.Uvarint(b)
		return p, n > 0 && n == len(b)
	}
	p.places = map[string]place{}
	for len(b) > 0 && len(p.places) < maxPlaces {
		n := int(b[0])
		if n == 0 || n > maxID || len(b) < 1+n {
			return p, false
		}
		id := string(b[1 : 1+n])
		b = b[1+n:]
		var at place
		for _, v := range []*int64{&at.off, &at.aux} {
			u, n := binary.Uvarint(b)
			if n <= 0 || u > 1<<53 {
				return p, false
			}
			*v, b = int64(u), b[n:]
		}
		p.places[id] = at
	}
	return p, len(b) == 0
}
