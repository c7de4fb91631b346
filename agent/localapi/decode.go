package localapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// BadRequest returns the error for a request or message that is not understood, or has a
// value out of range.
func BadRequest(format string, args ...any) *Error {
	return &Error{Code: CodeBadRequest, Message: fmt.Sprintf(format, args...)}
}

// JSONProblem describes an error of decoding JSON into the struct at into. It says which
// field needs which kind of value, in the terms of JSON instead of Go.
func JSONProblem(err error, into any) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return "the message is empty; a JSON object is required"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "not JSON: the message is incomplete"
	case errors.As(err, &wrong):
		field, value := wrong.Field, strings.TrimPrefix(wrong.Value, "number ")
		switch {
		case field == "":
			field = "the message"
		case wrong.Type.Kind() != reflect.Slice && isList(into, field):
			field = "each of " + field
		}
		return fmt.Sprintf("%s must be %s, not %s", field, kindOf(wrong.Type), cmp.Or(jsonKinds[value], value))
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return field + " is not a known field"
	}
	return "not JSON: " + strings.TrimPrefix(err.Error(), "json: ")
}

// isList reports whether a field of the struct into which points is a list.
func isList(into any, name string) bool {
	t := reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type.Kind() == reflect.Slice
		}
	}
	return false
}

// jsonKinds maps package json's names of kinds to words.
var jsonKinds = map[string]string{"string": "a string", "number": "a number", "bool": "true or false", "array": "a list", "object": "an object"}

// kindOf describes the JSON value that the type needs.
func kindOf(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return kindOf(t.Elem())
	case k == reflect.String:
		return "a string"
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.Uint16:
		return "an integer from 0 to 65535"
	case k >= reflect.Int && k <= reflect.Int64:
		return "an integer"
	case k >= reflect.Uint && k <= reflect.Uint64:
		return "an integer from 0"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.Slice && t.Elem().Kind() == reflect.String:
		return "a list of strings"
	case k == reflect.Slice:
		return "a list"
	}
	return "an object"
}
