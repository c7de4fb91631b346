package ahp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Meta is a _meta object. Receivers ignore the keys they do not know.
type Meta map[string]json.RawMessage

// DecodeParams decodes the params or the result of a message into v and, if v has a Validate method, calls it.
// Absent params are an empty object. The error says which member was wrong, fit for an InvalidParams answer.
func DecodeParams(raw []byte, v any) error {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return describe(err)
	}
	if c, ok := v.(interface{ Validate() error }); ok {
		return c.Validate()
	}
	return nil
}

// describe replaces the Go names in an error of encoding/json by what a peer can understand.
func describe(err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return err
	}
	field := t.Field
	if field == "" {
		field = "value"
	}
	return fmt.Errorf("%s has the wrong type: %s", field, t.Value)
}

// marshal is json.Marshal without HTML escapes. It panics if v holds raw JSON that is not JSON or a number that JSON does
// not have: everything given to it was decoded or made here.
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
