package host

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/output"
	"tether/internal/jsonspan"
)

const envelopeRoom = 160 // bytes; terminal/data's envelope besides its text and its channel

// The versions in whose forms the host encodes: terminals have a lifecycle in the newest
// one, only an exit code in the oldest.
var newestVersion, oldestVersion = ahp.Versions()[0], ahp.Versions()[len(ahp.Versions())-1]

// pieceLocked makes an envelope of an action.
func (h *Host) pieceLocked(uri string, a ahp.Action, origin *ahp.Origin) channel.Piece {
	seq := h.envelopes.Next()
	return channel.Piece{Seq: seq, Msg: ahp.AppendEnvelope(nil, uri, seq, origin, "", ahp.AppendAction(nil, a))}
}

// dataText returns the text between the quotes, as a part of msg, of a terminal/data
// notification that ends with quoted.
func dataText(msg, quoted []byte) []byte {
	end := len(msg) - len(`"}}}`)
	return msg[end-(len(quoted)-2) : end : end]
}

// appendObservers appends the notification that tells an owner the number of observers.
func appendObservers(dst []byte, channel string, count int) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"`+ahp.MethodObservers+`","params":{"channel":`...)
	dst = jsonspan.AppendQuoteString(dst, channel)
	dst = append(dst, `,"count":`...)
	return append(strconv.AppendInt(dst, int64(count), 10), `}}`...)
}

// snapshot is the state of a channel at one serverSeq, taken under the lock and encoded
// without it.
type snapshot struct {
	uri     string
	seq     int64
	version string

	root  *ahp.RootState // the root's
	talk  json.Marshaler // a session's or chat's; else a terminal's:
	state ahp.TerminalState
	text  output.View
	shows *output.Behind // the screen before the text, drawn when it is encoded; nil: state has it
}

// size returns about how long the encoded snapshot will be, in bytes.
func (s *snapshot) size() int {
	n := 512 + s.text.Size()
	if at := s.state.Meta.Screen; at != nil {
		n += 2*len(at.Data) + 16*len(at.Sizes)
	}
	return n
}

// append writes the snapshot as an ahp.Snapshot. Recorded text is copied without being
// decoded.
func (s *snapshot) append(dst []byte) []byte {
	if s.shows != nil {
		s.state.Meta.Screen = s.shows.Snapshot(s.text.From)
	}
	dst = slices.Grow(dst, s.size())
	dst = append(dst, `{"resource":`...)
	dst = jsonspan.AppendQuoteString(dst, s.uri)
	dst = append(dst, `,"fromSeq":`...)
	dst = strconv.AppendInt(dst, s.seq, 10)
	dst = append(dst, `,"state":`...)
	switch {
	case s.root != nil:
		dst = append(dst, s.root.MarshalFor(s.version)...)
	case s.talk != nil:
		raw, _ := s.talk.MarshalJSON() // cannot fail with types of ahp
		dst = append(dst, raw...)
	default:
		dst = s.appendState(dst)
	}
	return append(dst, '}')
}

// appendState inserts the content into the state that ahp encodes without it. The text of
// the empty content occurs only once: within a string its quotes would be escaped.
func (s *snapshot) appendState(dst []byte) []byte {
	head, tail, _ := bytes.Cut(s.state.MarshalFor(s.version), []byte(`"content":[]`))
	dst = append(dst, head...)
	dst = append(dst, `"content":`...)
	dst = s.text.Append(dst)
	return append(dst, tail...)
}

// appendArray writes a JSON array; one writes an element.
func appendArray[T any](dst []byte, list []T, one func(element *T, dst []byte) []byte) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = one(&list[i], dst)
	}
	return append(dst, ']')
}
