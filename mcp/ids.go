package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"tether/internal/jsonspan"
)

// ids keeps the ids of a client's requests byte for byte. go-sdk (v1.8.0) decodes numbers
// into float64, so that 9007199254740993 is answered as 9007199254740992, 1.5 as 1 and a
// request with the id null not at all. An id that it would change is given to it as a
// string: this prefix, which nobody can guess, and the id. TestIDsComeBack fails without
// this, and says when the SDK needs it no more.
type ids string

var errID = errors.New("an id must be a string or a whole number")

// in returns a message of the client for the SDK. It fails with errID, or if the message
// has text that is not Unicode. Parameters of events that are whole numbers are written
// as integers, as those of tools are; the SDK decodes them.
func (d ids) in(message []byte) ([]byte, error) {
	if err := jsonspan.CheckText(message); err != nil {
		return nil, err
	}
	if trimmed := bytes.TrimSpace(message); len(trimmed) > 0 && trimmed[0] == '[' { // over HTTP, in old versions of the protocol
		var batch []json.RawMessage
		if jsonspan.Unmarshal(message, &batch) != nil {
			return message, nil
		}
		for i, one := range batch {
			one, err := d.in(one)
			if err != nil {
				return nil, err
			}
			batch[i] = one
		}
		return json.Marshal(batch)
	}
	var members map[string]json.RawMessage
	if jsonspan.Unmarshal(message, &members) != nil || members["method"] == nil {
		return message, nil // the SDK says what is wrong; the ids of answers are its own
	}
	var method string
	_ = jsonspan.Unmarshal(members["method"], &method)
	params := members["params"]
	switch {
	case method == "notifications/cancelled":
		params = d.member(params, "requestId")
	case strings.HasPrefix(method, "events/"):
		params = jsonspan.Whole(params)
	}
	id, given := members["id"]
	if given {
		var err error
		if id, err = d.token(id); err != nil {
			return nil, err
		}
		params = edit(params, "_meta", func(meta json.RawMessage) json.RawMessage { return d.member(meta, "progressToken") })
	}
	if bytes.Equal(id, members["id"]) && bytes.Equal(params, members["params"]) {
		return message, nil
	}
	if given {
		members["id"] = id
	}
	if params != nil {
		members["params"] = params
	}
	return json.Marshal(members)
}

// member returns the object with the id in this member as token returns it.
func (d ids) member(object json.RawMessage, name string) json.RawMessage {
	return edit(object, name, func(id json.RawMessage) json.RawMessage {
		if t, err := d.token(id); err == nil {
			return t
		}
		return id
	})
}

// edit returns the object with f's result as the member, or as it is if it has no such
// member.
func edit(object json.RawMessage, name string, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if len(object) == 0 || jsonspan.Unmarshal(object, &members) != nil || members[name] == nil {
		return object
	}
	now := f(members[name])
	if bytes.Equal(now, members[name]) {
		return object
	}
	members[name] = now
	edited, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return edited
}

// token returns the id as the SDK gets it: as it is if the SDK keeps it.
func (d ids) token(id json.RawMessage) (json.RawMessage, error) {
	const exact = 15 // digits of a number that float64 holds
	kept := false
	switch {
	case id[0] == '"':
		kept = bytes.IndexFunc(id, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`\<>&`, r) }) < 0
	case id[0] != '-' && (id[0] < '0' || id[0] > '9'):
		return nil, errID
	case bytes.ContainsAny(id, ".eE"):
		if f, err := strconv.ParseFloat(string(id), 64); err != nil || f != math.Trunc(f) {
			return nil, errID
		}
	default:
		kept = len(id) <= exact && string(id) != "-0"
	}
	if kept {
		return id, nil
	}
	return json.Marshal(string(d) + string(id))
}

// out returns what the SDK sends, with the ids as the client has sent them.
func (d ids) out(p []byte) []byte {
	mark := []byte(`:"` + string(d)) // outside of strings, which have no bare quote
	for at := 0; ; {
		i := bytes.Index(p[at:], mark)
		if i < 0 {
			return p
		}
		at += i + 1
		end := at + len(mark) - 1
		for end < len(p) && p[end] != '"' {
			if p[end] == '\\' {
				end++
			}
			end++
		}
		var token string
		if end >= len(p) || jsonspan.Unmarshal(p[at:end+1], &token) != nil {
			return p
		}
		id := strings.TrimPrefix(token, string(d))
		p = append(append(bytes.Clone(p[:at]), id...), p[end+1:]...)
		at += len(id)
	}
}
