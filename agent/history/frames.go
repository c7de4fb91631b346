package history

import "bytes"

// frames reads single frames, for one goroutine. It keeps the last file open, since the
// next frame is mostly in the same.
type frames struct {
	h       *History
	open    Source // nil if none is
	name    string // of open
	scratch []byte
	header  header // of the frame that was expanded last, if it was where it was expected
}

// expand appends the text of a unit's piece to dst: empty lines if it is damaged or gone.
func (r *frames) expand(dst []byte, u *unit, i int) []byte {
	r.header = header{}
	p := &u.pieces[i]
	if p.plain != nil {
		return append(dst, p.plain...)
	}
	name := u.of.terminal + "/" + segmentName(p.segment)
	if packed := r.packed(name, p); packed != nil {
		if text, ok := r.h.codec.unpack(dst, p.header, packed); ok {
			r.header, _ = parseHeader(r.scratch)
			return text
		}
	}
	r.close()
	// The segment was written anew after its headers were read, or it is damaged.
	from := len(dst)
	dst = append(dst, bytes.Repeat([]byte{'\n'}, p.text)...)
	data, _ := r.h.readFile(nil, name, maxSegment) // what cannot be read has no hits
	for hd, packed := range headers(data) {
		if hd.off >= p.end() || hd.off+int64(hd.text) <= p.off {
			continue
		}
		if text, ok := r.h.codec.unpack(nil, hd, packed); ok {
			f := frameOf(hd, text)
			f.clip(p.off, p.end())
			copy(dst[from+int(f.Off-p.off):], f.Data)
		}
	}
	return dst
}

// packed returns the compressed text of a frame, which is valid until the next call, and
// nil if it is not where it was.
func (r *frames) packed(name string, p *piece) []byte {
	if r.name != name || r.open == nil {
		r.close()
		src, err := r.h.fs.Open(name)
		if err != nil {
			return nil
		}
		r.open, r.name = src, name
	}
	if n := p.size + p.packed; cap(r.scratch) < n {
		r.scratch = make([]byte, n+n/4)
	}
	both := r.scratch[:p.size+p.packed]
	if n, _ := r.open.ReadAt(both, int64(p.at)); n < len(both) { // an error leaves it short
		return nil
	}
	if hd, n := parseHeader(both); n != p.size || hd.off != p.off || hd.text != p.text || hd.packed != p.packed {
		return nil
	}
	return both[p.size:]
}

func (r *frames) close() {
	if r.open != nil {
		_ = r.open.Close() // it was only read
		r.open = nil
	}
}
