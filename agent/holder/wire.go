package holder

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The framing of version 1 is frozen; docs/HOLDER.md has it byte by byte. All
// numbers are big-endian.

const (
	magic      = "TETHER-H"
	minVersion = 1
	maxVersion = 1
	// features is the set of abilities beyond version 1 that this program
	// has. A side uses one only when both have it.
	features = featureSignal | featureKeep

	featureSignal uint64 = 1 << 0 // kindSignal
	featureKeep   uint64 = 1 << 1 // kindKeep

	helloHead = len(magic) + 2 // bytes before the part that may grow
	helloBody = 2 + 2 + 8      // bytes of that part in version 1
	maxHello  = 1024           // bytes of that part in any version
)

// kind is the first byte of a frame. Kinds with bit 7 may be skipped by those
// who do not know them.
type kind uint8

const optional kind = 0x80

// Frames of the daemon.
const (
	kindStream     kind = 0x01 // offset u64, window u32
	kindTaken      kind = 0x02 // offset u64
	kindInput      kind = 0x03 // request u32, bytes
	kindResize     kind = 0x04 // request u32, columns u16, rows u16
	kindKill       kind = 0x05 // request u32, grace in milliseconds u32
	kindCancel     kind = 0x06 // request u32
	kindSetMeta    kind = 0x07 // request u32, bytes
	kindCheckpoint kind = 0x08 // request u32, offset u64, bytes
	kindForget     kind = 0x09 // request u32
	kindSignal     kind = 0x0a // request u32, name; with featureSignal
	kindKeep       kind = 0x0b // offset u64; with featureKeep
	kindSpawn      kind = 0x21 // fields; only on the pipe of a start
)

// Frames of the holder.
const (
	kindState    kind = 0x41 // base u64, end u64, taken u64, started u64 (Unix nanoseconds), pid u32, columns u16, rows u16, limit u64
	kindMeta     kind = 0x42 // bytes
	kindNote     kind = 0x43 // offset u64, bytes
	kindReady    kind = 0x44 // nothing
	kindData     kind = 0x45 // offset u64, bytes
	kindExit     kind = 0x46 // end u64, at u64 (Unix nanoseconds), code u32 (two's complement), name of the signal
	kindReply    kind = 0x47 // request u32, status u8, text
	kindReplaced kind = 0x48 // nothing
	kindStarted  kind = 0x61 // nothing; only on the pipe of a start
	kindFailed   kind = 0x62 // fields; only on the pipe of a start
)

const (
	frameHead = 1 + 4 // kind u8, length of the rest u32
	dataHead  = frameHead + 8

	maxData  = 64 << 10      // bytes of output in one frame
	maxInput = 32 << 10      // bytes of input in one frame
	maxBlob  = 64 << 10      // bytes of meta or of a checkpoint
	maxFrame = maxBlob + 256 // bytes after the head of any frame but kindSpawn
	maxText  = 4 << 10       // bytes of an error's text
	maxSpawn = 8 << 20       // bytes of what is to run; Linux allows 6 MiB of arguments and environment
	maxField = 4 << 20       // bytes of one of its fields
)

// Status of a reply.
const (
	statusOK      = 0
	statusError   = 1 // the text says what
	statusClosed  = 2 // the terminal was closed
	statusRunning = 3 // the child has not ended
)

var (
	errFrame = errors.New("holder: malformed frame")
	errSize  = errors.New("holder: frame too large")
)

// VersionError is returned when no version of the framing is known to both
// sides.
type VersionError struct{ Min, Max int } // what the other side knows

func (e *VersionError) Error() string {
	return fmt.Sprintf("holder speaks versions %d to %d, this program %d to %d", e.Min, e.Max, minVersion, maxVersion)
}

// hello is what both sides say first.
type hello struct {
	min, max uint16
	features uint64
}

func ourHello() hello { return hello{minVersion, maxVersion, features} }

func (h hello) append(dst []byte) []byte {
	dst = append(dst, magic...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(helloBody))
	dst = binary.BigEndian.AppendUint16(dst, h.min)
	dst = binary.BigEndian.AppendUint16(dst, h.max)
	return binary.BigEndian.AppendUint64(dst, h.features)
}

// readHello reads the other side's hello. What a later version adds to it is
// skipped.
func readHello(r io.Reader) (hello, error) {
	var head [helloHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return hello{}, err
	}
	n := int(binary.BigEndian.Uint16(head[len(magic):]))
	if string(head[:len(magic)]) != magic || n < helloBody || n > maxHello {
		return hello{}, errFrame
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return hello{}, err
	}
	f := fields{b: body}
	h := hello{f.u16(), f.u16(), f.u64()}
	if h.min > h.max || h.min == 0 {
		return hello{}, errFrame
	}
	return h, nil
}

// agree returns the version to speak with the other side: the newest that
// both know.
func (h hello) agree() (int, error) {
	v := min(int(h.max), maxVersion)
	if v < int(h.min) || v < minVersion {
		return 0, &VersionError{int(h.min), int(h.max)}
	}
	return v, nil
}

// beginFrame appends the head of a frame with its length still open and
// endFrame, given where that was, fills it in.
func beginFrame(dst []byte, k kind) []byte { return append(dst, byte(k), 0, 0, 0, 0) }

func endFrame(dst []byte, at int) []byte {
	binary.BigEndian.PutUint32(dst[at+1:], uint32(len(dst)-at-frameHead))
	return dst
}

// frames reads frames of one direction.
type frames struct {
	r     *bufio.Reader
	known func(kind) bool
	small [64]byte // most frames fit: reading them allocates nothing
}

// next returns the head of the next frame whose kind is known, or an error
// for one that must not be skipped. The caller reads exactly size bytes.
func (f *frames) next() (k kind, size int, err error) {
	for {
		var head [frameHead]byte
		if _, err := io.ReadFull(f.r, head[:]); err != nil {
			return 0, 0, err
		}
		k, n := kind(head[0]), binary.BigEndian.Uint32(head[1:])
		if n > maxFrame {
			return 0, 0, errSize
		}
		if f.known(k) {
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

// fields takes a payload apart. After a field that is not there bad is set
// and all values are zero. What is left over is of a later version.
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
