package holder

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"tether/platform/proc"
	"tether/platform/pty"
)

// The data in the pipes between a new holder and its starter: the command to run, and the
// confirmation that it runs, or the error.

// Fields of a spawn frame: key u8, length u32, value. Keys with bit 7 may be skipped by a
// holder that does not know them.
const (
	fieldSocket     = 1 // directory of the socket
	fieldID         = 2
	fieldPath       = 3
	fieldArg        = 4 // once for each
	fieldDir        = 5
	fieldEnv        = 6 // once for each
	fieldSize       = 7 // columns u16, rows u16
	fieldLogBytes   = 8 // u64
	fieldMeta       = 9
	fieldAwayHold   = 10 // nanoseconds u64
	fieldStall      = 11 // nanoseconds u64
	fieldKeepExited = 12 // nanoseconds u64
	fieldKey        = 13
	fieldLock       = 14 // path of the daemon's lock
	fieldFeed       = 15 // empty: the child's standard input is a pipe, see kindFeed
	fieldLimits     = 16 // proc.Limits.String: those of the child
)

func appendField[T string | []byte](dst []byte, key byte, value T) []byte {
	dst = append(dst, key)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

func u64Field(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// encodeSpawn is all that goes through a new holder's pipe.
func encodeSpawn(o Options, s Spec) ([]byte, error) {
	if len(o.Key) != KeyBytes {
		return nil, fmt.Errorf("the holders' key has %d bytes, want %d", len(o.Key), KeyBytes)
	}
	dst := beginFrame(kindSpawn)
	dst = appendField(dst, fieldSocket, o.Dir)
	dst = appendField(dst, fieldID, s.ID)
	dst = appendField(dst, fieldPath, s.Command.Path)
	for _, arg := range s.Command.Args {
		dst = appendField(dst, fieldArg, arg)
	}
	dst = appendField(dst, fieldDir, s.Command.Dir)
	for _, entry := range s.Command.Env {
		dst = appendField(dst, fieldEnv, entry)
	}
	size := binary.BigEndian.AppendUint16(nil, s.Command.Size.Cols)
	dst = appendField(dst, fieldSize, binary.BigEndian.AppendUint16(size, s.Command.Size.Rows))
	dst = appendField(dst, fieldLogBytes, u64Field(int64(s.LogBytes)))
	dst = appendField(dst, fieldMeta, s.Meta)
	dst = appendField(dst, fieldAwayHold, u64Field(int64(s.AwayHold)))
	dst = appendField(dst, fieldStall, u64Field(int64(s.Stall)))
	dst = appendField(dst, fieldKeepExited, u64Field(int64(s.KeepExited)))
	dst = appendField(dst, fieldKey, o.Key)
	dst = appendField(dst, fieldLock, o.Lock)
	if s.Command.Feed {
		dst = appendField(dst, fieldFeed, "")
	}
	if !s.Command.Limits.IsZero() {
		dst = appendField(dst, fieldLimits, s.Command.Limits.String())
	}
	if err := s.Command.CheckSize(); err != nil {
		return nil, err
	}
	if n := len(dst) - frameHead; n > maxSpawn {
		return nil, fmt.Errorf("a command of %d bytes: at most %d are allowed", n, maxSpawn)
	}
	return append(ourHello().encode(), endFrame(dst)...), nil
}

// readSpawn reads a new holder's command, and of its options the directory, the key and
// the lock.
func readSpawn(r io.Reader) (o Options, s Spec, err error) {
	h, err := readHello(r)
	if err != nil {
		return o, s, err
	}
	if err := h.agree(); err != nil {
		return o, s, err
	}
	p, err := readWhole(r, kindSpawn, maxSpawn)
	if err != nil {
		return o, s, err
	}
	o, s, err = decodeSpawn(p)
	if err == nil && len(o.Key) != KeyBytes {
		err = errFrame
	}
	if err != nil {
		return o, s, err
	}
	s, err = s.withDefaults()
	return o, s, err
}

// readWhole reads one frame that must be of kind k.
func readWhole(r io.Reader, k kind, limit int) ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	switch {
	case kind(head[0]) != k:
		return nil, errFrame
	case n > uint32(limit):
		return nil, errSize
	}
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	return p, err
}

func decodeSpawn(p []byte) (o Options, s Spec, err error) {
	f := fields{b: p}
	for len(f.b) > 0 && !f.bad {
		key := f.u8()
		n := f.u32()
		if n > maxField {
			return o, s, errSize
		}
		value := fields{b: f.take(int(n))}
		if f.bad {
			break
		}
		switch key {
		case fieldSocket:
			o.Dir = string(value.b)
		case fieldKey:
			o.Key = append([]byte(nil), value.b...)
		case fieldLock:
			o.Lock = string(value.b)
		default:
			s.decodeField(key, &value)
		}
		f.bad = value.bad
	}
	return o, s, f.err()
}

func (s *Spec) decodeField(key byte, v *fields) {
	switch key {
	case fieldID:
		s.ID = string(v.b)
	case fieldPath:
		s.Command.Path = string(v.b)
	case fieldArg:
		s.Command.Args = append(s.Command.Args, string(v.b))
	case fieldDir:
		s.Command.Dir = string(v.b)
	case fieldEnv:
		s.Command.Env = append(s.Command.Env, string(v.b))
	case fieldSize:
		s.Command.Size = pty.Size{Cols: v.u16(), Rows: v.u16()}
	case fieldLogBytes:
		s.LogBytes = int(min(v.offset(), maxLogBytes))
	case fieldMeta:
		s.Meta = append([]byte(nil), v.rest(maxBlob)...)
	case fieldAwayHold:
		s.AwayHold = time.Duration(v.offset())
	case fieldStall:
		s.Stall = time.Duration(v.offset())
	case fieldKeepExited:
		s.KeepExited = time.Duration(v.offset())
	case fieldFeed:
		s.Command.Feed = true
	case fieldLimits:
		var err error
		s.Command.Limits, err = proc.ParseLimits(string(v.b))
		v.bad = err != nil
	default:
		v.bad = kind(key)&optional == 0
	}
}

// The type of a failed start's error, for callers that act on it.
const (
	causeOther      = 0
	causeNotExist   = 1 // fs.ErrNotExist
	causePermission = 2 // fs.ErrPermission
	causeInUse      = 3 // ErrInUse
	causeTooLarge   = 4 // pty.ErrTooLarge
)

var causes = map[uint8]error{causeNotExist: fs.ErrNotExist, causePermission: fs.ErrPermission, causeInUse: ErrInUse, causeTooLarge: pty.ErrTooLarge}

// remoteError is an error of the holder: its text and its type.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

// Fields of a failed frame, as those of a spawn frame.
const (
	failedText  = 1
	failedCause = 2 // u8
	failedWhat  = 3 // pty.StartError.What; missing for other errors
	failedName  = 4
)

func encodeFailed(err error) []byte {
	dst := beginFrame(kindFailed)
	if start := (*pty.StartError)(nil); errors.As(err, &start) {
		dst = appendField(dst, failedWhat, start.What)
		dst = appendField(dst, failedName, start.Name[:min(len(start.Name), maxText)])
		err = start.Err
	}
	cause := byte(causeOther)
	for c, is := range causes {
		if errors.Is(err, is) {
			cause = c
		}
	}
	text := err.Error()
	dst = appendField(dst, failedText, text[:min(len(text), maxText)])
	dst = appendField(dst, failedCause, []byte{cause})
	return endFrame(dst)
}

func decodeFailed(p []byte) error {
	e := &remoteError{}
	start := &pty.StartError{Err: e}
	for f := (fields{b: p}); len(f.b) > 0; {
		key := f.u8()
		v := fields{b: f.take(int(min(f.u32(), maxField)))}
		if f.bad {
			return errFrame
		}
		switch key {
		case failedText:
			e.text = string(v.b)
		case failedCause:
			e.is = causes[v.u8()]
		case failedWhat:
			start.What = string(v.b)
		case failedName:
			start.Name = string(v.b)
		}
	}
	if start.What != "" {
		return start
	}
	return e
}

// errEnded is returned by readStarted if the process has said nothing.
var errEnded = errors.New("the holder ended before it was ready")

// readStarted reads a new holder's answer: success, with the child's faults, or the
// error.
func readStarted(r io.Reader) (faults string, err error) {
	b := bufio.NewReaderSize(r, 512)
	head, err := b.Peek(1)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errEnded, err)
	}
	if kind(head[0]) == kindStarted {
		p, err := readWhole(b, kindStarted, maxFrame)
		return string(p), err
	}
	p, err := readWhole(b, kindFailed, maxFrame)
	if err != nil {
		return "", err
	}
	return "", decodeFailed(p)
}
