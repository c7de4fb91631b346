package checkout

import (
	"bufio"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"io"
)

// Bounds of packed objects.
const (
	maxChain    = 64       // differences between one object and the whole one that they begin with
	maxUnpacked = 1 << 20  // bytes of all of them, unpacked
	maxObject   = 64 << 10 // bytes of a commit that others differ from
)

// pack reads commits of a pack, see gitformat-pack. An object there is whole, or the
// difference from another one.
type pack struct {
	f      io.ReaderAt
	size   int64
	budget int // bytes that may still be unpacked
}

// Types of objects. Git writes differences from the object with a hash only where the
// other end of a fetch does not know the other kind; they are not read.
const (
	typeCommit = 1
	typeDelta  = 6 // a difference from the object so many bytes before
)

// commit returns the beginning of the text of the commit at an offset.
func (p *pack) commit(at int64) ([]byte, error) {
	var deltas [][]byte // the last one first
	for range maxChain {
		kind, base, text, err := p.object(at)
		switch {
		case err != nil:
			return nil, err
		case kind == typeCommit:
			for i := len(deltas) - 1; i >= 0; i-- {
				if text, err = apply(text, deltas[i]); err != nil {
					return nil, err
				}
			}
			return text[:min(len(text), maxCommit)], nil
		case base < 0 || base >= p.size:
			return nil, errNotGit
		}
		deltas, at = append(deltas, text), base
	}
	return nil, errTooLarge
}

// object returns the type of the object at an offset, its unpacked bytes, and where the
// object is from which it differs.
func (p *pack) object(at int64) (kind int, base int64, text []byte, err error) {
	r := bufio.NewReader(io.NewSectionReader(p.f, at, p.size-at))
	first, err := r.ReadByte()
	for next := first; err == nil && next&0x80 != 0; { // the object's size
		next, err = r.ReadByte()
	}
	if err != nil {
		return 0, 0, nil, err
	}
	switch kind = int(first >> 4 & 7); kind {
	case typeCommit:
	case typeDelta:
		base, err = before(r, at)
	default:
		err = errNotGit
	}
	if err != nil {
		return 0, 0, nil, err
	}
	unpacked, err := zlib.NewReader(r)
	if err != nil {
		return 0, 0, nil, err
	}
	defer unpacked.Close()
	most := min(maxObject, p.budget)
	text, err = io.ReadAll(io.LimitReader(unpacked, int64(most)))
	if p.budget -= len(text); kind != typeCommit && len(text) == most {
		err = errTooLarge
	}
	return kind, base, text, err
}

// before reads how far another object is before this one.
func before(r io.ByteReader, at int64) (int64, error) {
	back := int64(-1)
	for range 8 {
		c, err := r.ReadByte()
		if err != nil {
			return -1, err
		}
		if back = (back+1)<<7 | int64(c&0x7f); c&0x80 == 0 {
			return at - back, nil
		}
	}
	return -1, errNotGit
}

// apply makes an object from the one that it differs from.
func apply(base, delta []byte) ([]byte, error) {
	_, n := binary.Uvarint(delta)
	if n <= 0 {
		return nil, errNotGit
	}
	delta = delta[n:]
	size, n := binary.Uvarint(delta)
	if n <= 0 || size > maxObject {
		return nil, errTooLarge
	}
	delta = delta[n:]
	text := make([]byte, 0, size)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		part := delta
		if op&0x80 == 0 { // bytes that follow
			if op == 0 || int(op) > len(delta) {
				return nil, errNotGit
			}
			part, delta = delta[:op], delta[op:]
		} else { // a range of the base: which bytes of its offset and its size follow
			var at [8]byte
			for bit := range 7 {
				if op>>bit&1 == 0 {
					continue
				}
				if len(delta) == 0 {
					return nil, errNotGit
				}
				at[bit], delta = delta[0], delta[1:]
			}
			from, long := int(binary.LittleEndian.Uint32(at[:4])), int(at[4])|int(at[5])<<8|int(at[6])<<16
			long = cmp.Or(long, 0x10000)
			if from > len(base) || long > len(base)-from {
				return nil, errNotGit
			}
			part = base[from : from+long]
		}
		if text = append(text, part...); len(text) > int(size) {
			return nil, errNotGit
		}
	}
	return text, nil
}
