package ahp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"tether/internal/jsonspan"
)

// Meta is a _meta object. Receivers ignore the keys they do not know.
type Meta map[string]json.RawMessage

// with stores a value under a key, and returns the _meta.
func (m Meta) with(key string, value any) Meta {
	if m == nil {
		m = Meta{}
	}
	m[key] = marshal(value)
	return m
}

// DecodeParams decodes the params or the result of a message into v and, if v has a
// Validate method, calls it. Absent params are an empty object. The error says which
// member was wrong, fit for an InvalidParams answer.
func DecodeParams(raw []byte, v any) error {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if err := jsonspan.Unmarshal(raw, v); err != nil {
		return describe(err)
	}
	if c, ok := v.(interface{ Validate() error }); ok {
		return c.Validate()
	}
	return nil
}

// describe replaces the Go names in an error of encoding/json by words that a peer can
// understand.
func describe(err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return err
	}
	field := cmp.Or(t.Field, "value")
	return fmt.Errorf("%s has the wrong type: %s", field, t.Value)
}

// marshal is json.Marshal without HTML escapes. It panics if v holds raw JSON that is not
// JSON or a number that JSON does not have: everything given to it was decoded or made
// here.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("ahp: encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// list returns s, never nil: required arrays are written as [], not null.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// members calls f for each member of object, as jsonspan.Object does. The object must be
// known to be valid JSON. Since members checks nothing, it skips a long string by
// searching only for its closing quote: terminal output has many escapes, but few quotes.
// It returns false, without calling f, if the JSON is not an object.
func members(object []byte, f func(key, value []byte)) bool {
	if len(object) == 0 || object[0] != '{' {
		return false
	}
	for i := 1; i < len(object); {
		if object[i] != '"' { // space, comma, the closing brace
			i++
			continue
		}
		keyEnd := skipString(object, i)
		key := object[i+1 : keyEnd-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key, _ = jsonspan.AppendUnquote(nil, object[i:keyEnd])
		}
		value := keyEnd
		for bytes.IndexByte([]byte(" \t\r\n:"), object[value]) >= 0 {
			value++
		}
		i = skipValue(object, value)
		f(key, object[value:i])
	}
	return true
}

// skipValue returns where the value that begins at i ends.
func skipValue(valid []byte, i int) int {
	switch valid[i] {
	case '"':
		return skipString(valid, i)
	case '{', '[':
		return skipNested(valid, i)
	}
	for i < len(valid) && bytes.IndexByte([]byte(",}] \t\r\n"), valid[i]) < 0 {
		i++
	}
	return i
}

func skipNested(valid []byte, i int) int {
	for depth := 0; i < len(valid); {
		switch valid[i] {
		case '"':
			i = skipString(valid, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			break
		}
	}
	return i
}

// skipString returns where the string that begins at i ends. A quote after an odd number
// of backslashes belongs to the text.
func skipString(valid []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(valid[i:], '"')
		if n < 0 {
			return len(valid) // cannot be: it is valid
		}
		i += n
		slashes := 0
		for valid[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}
