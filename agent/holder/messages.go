package holder

import (
	"encoding/binary"
	"math"
	"time"

	"tether/platform/proc"
	"tether/platform/pty"
)

// Frames with more than two fields, and frames that both sides encode.

// state is the first frame of a connection: the holder's state.
type state struct {
	base, end, taken int64
	started          time.Time
	pid              int
	size             pty.Size
	limit            int64 // bytes of the log
}

func (s state) frame() []byte {
	dst := beginFrame(kindState)
	for _, v := range []int64{s.base, s.end, s.taken, s.started.UnixNano()} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(v))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(s.pid))
	dst = binary.BigEndian.AppendUint16(dst, s.size.Cols)
	dst = binary.BigEndian.AppendUint16(dst, s.size.Rows)
	dst = binary.BigEndian.AppendUint64(dst, uint64(s.limit))
	return endFrame(dst)
}

func decodeState(p []byte) (state, error) {
	f := fields{b: p}
	s := state{base: f.offset(), end: f.offset(), taken: f.offset()}
	s.started = time.Unix(0, int64(f.u64()))
	s.pid = int(f.u32())
	s.size = pty.Size{Cols: f.u16(), Rows: f.u16()}
	s.limit = f.offset()
	if s.base > s.end || s.taken > s.end {
		f.bad = true
	}
	return s, f.err()
}

// exitRecord is the end of the child, after its last byte.
type exitRecord struct {
	end  int64 // length of the stream
	at   time.Time
	exit pty.Exit
}

const maxSignal = 32 // bytes of a signal's name

func (e exitRecord) frame() []byte {
	dst := beginAt(kindExit, e.end)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.at.UnixNano()))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.exit.Code))
	dst = append(dst, e.exit.Signal[:min(len(e.exit.Signal), maxSignal)]...)
	return endFrame(dst)
}

func decodeExit(p []byte) (exitRecord, error) {
	f := fields{b: p}
	e := exitRecord{end: f.offset(), at: time.Unix(0, int64(f.u64()))}
	code := f.u32()
	if e.exit.Code = int(code); code == math.MaxUint32 {
		e.exit.Code = -1 // not known; Windows has all other codes of 32 bits
	}
	e.exit.Signal = string(f.rest(maxSignal))
	return e, f.err()
}

// reply answers a request.
type reply struct {
	request uint32
	status  uint8
	text    string
}

func (r reply) frame() []byte {
	dst := append(beginRequest(kindReply, r.request), r.status)
	dst = append(dst, r.text[:min(len(r.text), maxText)]...)
	return endFrame(dst)
}

func decodeReply(p []byte) (reply, error) {
	f := fields{b: p}
	r := reply{request: f.u32(), status: f.u8()}
	r.text = string(f.rest(maxText))
	return r, f.err()
}

// The text of a reply to kindReading: waits u8, flags u8, pid u32.
const (
	readingAlone  = 1
	readingRelays = 2
	readingTimed  = 4
)

func encodeReading(r proc.Reading) []byte {
	flags := byte(0)
	if r.Alone {
		flags |= readingAlone
	}
	if r.Relays {
		flags |= readingRelays
	}
	if r.Timed {
		flags |= readingTimed
	}
	return binary.BigEndian.AppendUint32([]byte{byte(r.Waits), flags}, uint32(r.Pid))
}

// decodeReading decodes the reply to kindReading. An unknown value means that nothing is
// known.
func decodeReading(p []byte) (proc.Reading, error) {
	f := fields{b: p}
	waits, flags, pid := f.u8(), f.u8(), f.u32()
	if f.bad || waits > uint8(proc.WaitsForKeys) || pid > math.MaxInt32 {
		return proc.Reading{}, f.err()
	}
	return proc.Reading{Waits: proc.Waits(waits), Pid: int(pid), Alone: flags&readingAlone != 0, Relays: flags&readingRelays != 0, Timed: flags&readingTimed != 0}, nil
}

// Checkpoint is a daemon's note about the stream at an offset, or the screen there. The
// holder does not interpret it.
type Checkpoint struct {
	Off  int64
	Blob []byte // at most 64 KiB of a note, 1 MiB of a screen
}

func (c Checkpoint) frame(k kind) []byte { return endFrame(append(beginAt(k, c.Off), c.Blob...)) }

func decodeCheckpoint(f *fields, limit int) (Checkpoint, error) {
	c := Checkpoint{Off: f.offset()}
	c.Blob = append([]byte(nil), f.rest(limit)...)
	return c, f.err()
}

func bytesFrame(k kind, p []byte) []byte { return endFrame(append(beginFrame(k), p...)) }

// beginRequest begins a frame whose first field is the number of a request.
func beginRequest(k kind, id uint32) []byte { return binary.BigEndian.AppendUint32(beginFrame(k), id) }

// beginAt begins a frame whose first field is an offset.
func beginAt(k kind, off int64) []byte {
	return binary.BigEndian.AppendUint64(beginFrame(k), uint64(off))
}

func takenFrame(off int64, rest time.Duration) []byte {
	dst := beginAt(kindTaken, off)
	if rest > 0 {
		dst = binary.BigEndian.AppendUint32(dst, uint32(rest.Microseconds()))
	}
	return endFrame(dst)
}

// putDataHead writes the head of a data frame of n bytes into dst, which has dataHead
// bytes.
func putDataHead(dst []byte, off int64, n int) {
	dst[0] = byte(kindData)
	binary.BigEndian.PutUint32(dst[1:], uint32(8+n))
	binary.BigEndian.PutUint64(dst[frameHead:], uint64(off))
}
