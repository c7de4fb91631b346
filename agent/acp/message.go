package acp

import (
	"bytes"
	"encoding/json"

	"tether/internal/jsonspan"
)

// message holds the parts of a line that decide how the proxy treats it. The slices alias
// the line.
type message struct {
	method string
	id     []byte // as sent; nil if there is none
	params []byte
	result []byte
	failed bool // an answer that is an error
}

func (m *message) isRequest() bool { return m.method != "" && m.id != nil }
func (m *message) isAnswer() bool  { return m.method == "" && m.id != nil }

// parse reads a line. ok is false if the line is not a single message: the proxy passes
// it on, and the receiver judges it.
func parse(line []byte) (m message, ok bool) {
	err := jsonspan.Object(line, func(key, value []byte) error {
		switch string(key) {
		case "method":
			m.method = stringOf(value)
		case "id":
			m.id = value
		case "params":
			m.params = value
		case "result":
			m.result = value
		case "error":
			m.failed = true
		}
		return nil
	})
	return m, err == nil && (m.method != "" || m.id != nil)
}

// stringOf returns the text of a JSON string, or "" for any other value.
func stringOf(value []byte) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// idKey returns the same key for all spellings of an id. Peers decode and encode ids, so
// an answer may spell its id differently.
func idKey(id []byte) string {
	if len(id) > 0 && id[0] == '"' {
		return `"` + stringOf(id)
	}
	return string(id)
}

// withMember returns the object with edit's result as the value of the member called
// name. edit gets nil if there is no such member, and returns nil to leave the member
// unchanged. All other members keep their order and the bytes of their values; the spaces
// between members are dropped. If object is not a JSON object, the result has this member
// only.
func withMember(object []byte, name string, edit func(old []byte) []byte) []byte {
	out := []byte{'{'}
	found := false
	put := func(key, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonspan.AppendQuote(out, key), ':')
		out = append(out, value...)
	}
	err := jsonspan.Object(object, func(key, value []byte) error {
		if string(key) == name {
			found = true
			if changed := edit(value); changed != nil {
				value = changed
			}
		}
		put(key, value)
		return nil
	})
	if err != nil {
		out = out[:1]
	}
	if !found {
		if value := edit(nil); value != nil {
			put([]byte(name), value)
		}
	}
	return append(out, '}')
}

// set returns an edit for withMember that always returns value.
func set(value []byte) func([]byte) []byte { return func([]byte) []byte { return value } }

// ending returns the white space after the message: its line end and any spaces before
// that.
func ending(line []byte) []byte {
	if end := line[len(bytes.TrimRight(line, " \t\r\n")):]; len(end) > 0 {
		return end
	}
	return []byte{'\n'} // the stream ended within the line
}
