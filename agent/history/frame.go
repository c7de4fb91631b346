package history

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"tether/internal/plain"
)

// Frame is a piece of a terminal's text.
type Frame struct {
	Off     int64
	Data    []byte    // the caller's
	First   time.Time // when the first of it was printed
	Time    time.Time // when the last of it was printed
	Missing int64     // so many bytes before Off are not there
}

// End is the offset after the frame.
func (f *Frame) End() int64 { return f.Off + int64(len(f.Data)) }

// On disk a frame is two frames of the zstd format: a skippable one with a header, which
// every decoder ignores, and one with the text and its checksum. A header has, in little
// endian:
//
//	magic of a skippable frame, 4 bytes
//	length of what follows, 4 bytes
//	mark, 4 bytes: "thf" and the version 1
//	text offset, 8 bytes
//	length of the text, 4 bytes
//	length of the compressed frame, 4 bytes
//	times of the first and the last text, Unix microseconds, 8 bytes each
//	length of the compressed lines, 4 bytes
//	a filter, see filterer, or none
//	compressed lines, see appendDrawn, or none
//	CRC-32C of everything from the mark on, 4 bytes
type header struct {
	off         int64
	text        int   // bytes
	packed      int   // bytes of the compressed frame
	first, last int64 // Unix microseconds
	filter      []byte
	drawn       []byte
	at, size    int // where it begins in its segment, and its bytes; only headers knows
}

const (
	skippable  = 0x184D2A5E // one of 16 magics that RFC 8878, 3.1.2 leaves to programs
	mark       = "thf\x01"
	fixed      = 4 + 8 + 4 + 4 + 8 + 8 + 4 // bytes of a header before the filter
	maxFilter  = 32 << 10                  // bytes
	maxFrame   = 256 << 10                 // bytes of text in a frame
	maxPacked  = maxFrame + maxFrame/8     // bytes, more than zstd needs for what it cannot compress
	frameExtra = 8 + fixed + 4             // bytes of a header without filter and lines
	maxSegment = 64 << 20                  // bytes of a file that are read
	spareText  = 64                        // bytes behind a text, with which the decoder is faster
)

// frameMagic begins every header.
func frameMagic() []byte { return binary.LittleEndian.AppendUint32(nil, skippable) }

func (hd *header) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, skippable)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(fixed+len(hd.filter)+len(hd.drawn)+4))
	from := len(dst)
	dst = append(dst, mark...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(hd.off))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(hd.text))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(hd.packed))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(hd.first))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(hd.last))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(hd.drawn)))
	dst = append(append(dst, hd.filter...), hd.drawn...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[from:], castagnoli()))
}

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// parseHeader reads the header at the start of p, and returns its length, 0 if there is
// none.
func parseHeader(p []byte) (hd header, n int) {
	if len(p) < frameExtra || binary.LittleEndian.Uint32(p) != skippable {
		return hd, 0
	}
	size := int64(binary.LittleEndian.Uint32(p[4:]))
	if size < fixed+4 || size > fixed+maxFilter+maxPacked+4 || size > int64(len(p)-8) {
		return hd, 0
	}
	body := p[8 : 8+size]
	sum := binary.LittleEndian.Uint32(body[size-4:])
	body = body[:size-4]
	if string(body[:4]) != mark || crc32.Checksum(body, castagnoli()) != sum {
		return hd, 0
	}
	lines := int64(len(body)) - int64(binary.LittleEndian.Uint32(body[36:]))
	if lines < fixed {
		return hd, 0
	}
	hd = header{
		off:    int64(binary.LittleEndian.Uint64(body[4:])),
		text:   int(binary.LittleEndian.Uint32(body[12:])),
		packed: int(binary.LittleEndian.Uint32(body[16:])),
		first:  int64(binary.LittleEndian.Uint64(body[20:])),
		last:   int64(binary.LittleEndian.Uint64(body[28:])),
		filter: body[fixed:lines],
		drawn:  body[lines:],
	}
	if hd.off < 0 || hd.off > maxOffset || hd.text < 1 || hd.text > maxFrame || hd.packed < 1 || hd.packed > maxPacked {
		return header{}, 0
	}
	return hd, int(8 + size)
}

// maxOffset bounds text offsets, so that sums of them do not overflow.
const maxOffset = 1 << 60

// headers walks through the frames of a segment: the header of each, and its compressed
// text. What is torn, damaged or foreign is passed over.
func headers(segment []byte) iter.Seq2[header, []byte] {
	return func(yield func(header, []byte) bool) {
		for all := len(segment); len(segment) > 0; {
			hd, n := parseHeader(segment)
			if n == 0 || n+hd.packed > len(segment) || isTorn(segment[n:], hd.packed) {
				segment = segment[1+nextMagic(segment[1:]):]
				continue
			}
			hd.at, hd.size = all-len(segment), n
			if !yield(hd, segment[n:n+hd.packed]) {
				return
			}
			segment = segment[n+hd.packed:]
		}
	}
}

// nextMagic returns where the next header may begin, at the latest the end.
func nextMagic(p []byte) int {
	if i := bytes.Index(p, frameMagic()); i >= 0 {
		return i
	}
	return len(p)
}

// isTorn reports whether another frame begins within the compressed text at the start of
// p, because the rest of this text was lost with the power.
func isTorn(p []byte, packed int) bool {
	if n := len(p) - packed; n == 0 || n >= 4 && binary.LittleEndian.Uint32(p[packed:]) == skippable {
		return false
	}
	within := p[:min(packed+3, len(p))] // the last magic may begin within
	for at := nextMagic(within); at < packed; at += 1 + nextMagic(within[at+1:]) {
		if _, n := parseHeader(p[at:]); n > 0 {
			return true
		}
	}
	return false
}

// codec compresses and expands frames. What that needs is made when it is first used, and
// given up some time after its last use: with its tables, it is most of the memory of a
// history.
type codec struct {
	encoders, decoders sync.Pool // of *zstd.Encoder and *zstd.Decoder
	filters            sync.Pool // of *filterer
}

func newCodec() *codec {
	c := &codec{}
	c.encoders.New = func() any {
		return right(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(128<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true)))
	}
	c.decoders.New = func() any {
		return right(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecoderLowmem(true)))
	}
	c.filters.New = func() any { return new(filterer) }
	return c
}

// right returns what right options make.
func right[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// pack appends the frame to dst.
func (c *codec) pack(dst []byte, f *Frame) []byte {
	enc, filter := c.encoders.Get().(*zstd.Encoder), c.filters.Get().(*filterer)
	defer c.encoders.Put(enc)
	defer c.filters.Put(filter)
	hd := header{off: f.Off, text: len(f.Data), first: f.First.UnixMicro(), last: f.Time.UnixMicro(), filter: filter.of(f.Data)}
	if filter.lines = appendDrawn(filter.lines[:0], filter.bulk.Drawn, len(f.Data)); len(filter.lines) > 0 {
		hd.drawn = enc.EncodeAll(filter.lines, nil)
	}
	at := len(dst)
	dst = hd.append(slices.Grow(dst, frameExtra+len(hd.filter)+len(hd.drawn)+len(f.Data)/4))
	from := len(dst)
	dst = enc.EncodeAll(f.Data, dst)
	hd.packed = len(dst) - from
	hd.append(dst[:at]) // over the one without this length
	return dst
}

// appendDrawn appends the lines that had to be drawn, so that a search need not do that
// again, up to about most bytes. Each is three varints and what the line shows. The
// varints are the number of bytes of the frame's text since the line before, that of the
// line, and that of what it shows.
func appendDrawn(dst []byte, drawn []plain.Drawn, most int) []byte {
	end := 0
	for _, d := range drawn {
		if len(dst)+len(d.Text) > most {
			break
		}
		for _, n := range []int{d.Start - end, d.End - d.Start, len(d.Text)} {
			dst = binary.AppendUvarint(dst, uint64(n))
		}
		dst = append(dst, d.Text...)
		end = d.End
	}
	return dst
}

// unpackDrawn appends the lines of a frame that begins at an offset to dst. Their text is
// in buf, which it returns.
func (c *codec) unpackDrawn(dst []plain.Drawn, buf []byte, hd header, at int) ([]plain.Drawn, []byte) {
	if len(hd.drawn) == 0 {
		return dst, buf
	}
	dec := c.decoders.Get().(*zstd.Decoder)
	defer c.decoders.Put(dec)
	from := len(buf)
	buf, err := dec.DecodeAll(hd.drawn, buf)
	if err != nil {
		return dst, buf[:from]
	}
	for end, rest := 0, buf[from:]; len(rest) > 0; {
		var n [3]int
		for i := range n {
			v, size := binary.Uvarint(rest)
			if size <= 0 || v > maxFrame {
				return dst, buf
			}
			n[i], rest = int(v), rest[size:]
		}
		start := end + n[0]
		if end = start + n[1]; end > hd.text || n[2] == 0 || n[2] > len(rest) || rest[n[2]-1] != '\n' {
			return dst, buf
		}
		dst = append(dst, plain.Drawn{Start: at + start, End: at + end, Text: rest[:n[2]]})
		rest = rest[n[2]:]
	}
	return dst, buf
}

// unpack appends the text of a frame to dst; ok is false if it is damaged.
func (c *codec) unpack(dst []byte, hd header, packed []byte) (text []byte, ok bool) {
	dec := c.decoders.Get().(*zstd.Decoder)
	defer c.decoders.Put(dec)
	text, err := dec.DecodeAll(packed, slices.Grow(dst, hd.text+spareText))
	return text, err == nil && len(text) == len(dst)+hd.text
}
