package terminals

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"tether/ahp"
	"tether/host/output"
	"tether/internal/jsonspan"
)

// MaxSnapshots bounds the recorded text in one reply, encoded; many snapshots share
// it. Our observers read 16 MiB, the official Go client 32.
const MaxSnapshots = 8 << 20 // bytes

// Snapshot is the state of a channel at one serverSeq, taken under the lock and encoded
// without it.
type Snapshot struct {
	URI     string
	Seq     int64
	Version string

	Root  *ahp.RootState // the root's
	Talk  json.Marshaler // a session's or chat's; else a terminal's:
	State ahp.TerminalState
	Text  output.View
	Shows *output.Behind // the screen before the text, drawn when it is encoded; nil: state has it
}

// size returns about how long the encoded snapshot will be, in bytes.
func (s *Snapshot) size() int {
	n := 512 + s.Text.Size()
	if at := s.State.Meta.Screen; at != nil {
		n += 2*len(at.Data) + 16*len(at.Sizes)
	}
	return n
}

// Append writes the snapshot as an ahp.Snapshot. Recorded text is copied without being
// decoded.
func (s *Snapshot) Append(dst []byte) []byte {
	if s.Shows != nil {
		s.State.Meta.Screen = s.Shows.Snapshot(s.Text.From)
	}
	dst = slices.Grow(dst, s.size())
	dst = append(dst, `{"resource":`...)
	dst = jsonspan.AppendQuoteString(dst, s.URI)
	dst = append(dst, `,"fromSeq":`...)
	dst = strconv.AppendInt(dst, s.Seq, 10)
	dst = append(dst, `,"state":`...)
	switch {
	case s.Root != nil:
		dst = append(dst, s.Root.MarshalFor(s.Version)...)
	case s.Talk != nil:
		raw, _ := s.Talk.MarshalJSON() // cannot fail with types of ahp
		dst = append(dst, raw...)
	default:
		dst = s.appendState(dst)
	}
	return append(dst, '}')
}

// appendState inserts the content into the state that ahp encodes without it. The text of
// the empty content occurs only once: within a string its quotes would be escaped.
func (s *Snapshot) appendState(dst []byte) []byte {
	head, tail, _ := bytes.Cut(s.State.MarshalFor(s.Version), []byte(`"content":[]`))
	dst = append(dst, head...)
	dst = append(dst, `"content":`...)
	dst = s.Text.Append(dst)
	return append(dst, tail...)
}

// AppendArray writes a JSON array; one writes an element.
func AppendArray[T any](dst []byte, list []T, one func(element *T, dst []byte) []byte) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(&list[i], dst)
	}
	return append(dst, ']')
}
