package holder

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// beginFrame returns the head of a frame. The caller appends the fields, and endFrame
// fills in their length.
func beginFrame(k kind) []byte { return []byte{byte(k), 0, 0, 0, 0} }

func endFrame(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-frameHead))
	return frame
}

// frames reads the frames of one direction of a connection.
type frames struct {
	r     *bufio.Reader
	known func(kind) bool
	small [64]byte // most frames fit: reading them allocates nothing
	owes  bool     // output that was passed to Direct's function may not be acknowledged yet
}

// next returns the head of the next frame of a known kind. It skips unknown frames, and
// fails for one that must not be skipped. The caller must then read exactly size bytes.
func (f *frames) next() (k kind, size int, err error) {
	for {
		var head [frameHead]byte
		if _, err := io.ReadFull(f.r, head[:]); err != nil {
			return 0, 0, err
		}
		k, n := kind(head[0]), binary.BigEndian.Uint32(head[1:])
		known, most := f.known(k), uint32(maxFrame)
		if known && (k == kindScreen || k == kindShown) {
			most = maxShown + 256
		}
		if n > most {
			return 0, 0, errSize
		}
		if known {
			return k, int(n), nil
		}
		if k&optional == 0 {
			return 0, 0, fmt.Errorf("%w: unknown kind %#x", errFrame, uint8(k))
		}
		if _, err := f.r.Discard(int(n)); err != nil {
			return 0, 0, err
		}
	}
}

// payload reads the rest of a frame. It is valid until the next call.
func (f *frames) payload(size int) ([]byte, error) {
	p := f.small[:]
	if size > len(p) {
		p = make([]byte, size)
	}
	p = p[:size]
	_, err := io.ReadFull(f.r, p)
	return p, err
}

// fields splits a payload. After a missing field, bad is set and all further values are
// zero. Bytes that remain belong to a later version.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if f.bad || n < 0 || n > len(f.b) {
		f.bad = true
		return nil
	}
	p := f.b[:n]
	f.b = f.b[n:]
	return p
}

func (f *fields) u8() uint8 {
	if p := f.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (f *fields) u16() uint16 {
	if p := f.take(2); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

func (f *fields) u32() uint32 {
	if p := f.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if p := f.take(8); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

// offset is a u64 that must be a position in a stream.
func (f *fields) offset() int64 {
	v := f.u64()
	if v >= 1<<63 {
		f.bad = true
		return 0
	}
	return int64(v)
}

// rest is a last field of any length up to limit.
func (f *fields) rest(limit int) []byte {
	if len(f.b) > limit {
		f.bad = true
	}
	return f.take(len(f.b))
}

func (f *fields) err() error {
	if f.bad {
		return errFrame
	}
	return nil
}
