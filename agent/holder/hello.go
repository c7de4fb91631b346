package holder

import (
	"encoding/binary"
	"fmt"
	"io"
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

// agree makes sure that there is a version that both sides know.
func (h hello) agree() error {
	if h.max < minVersion || h.min > maxVersion {
		return &VersionError{int(h.min), int(h.max)}
	}
	return nil
}
