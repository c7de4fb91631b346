// Package jsonspan finds the spans of JSON values without decoding them.
//
// tether carries terminal output as JSON strings inside JSON messages, many megabytes a
// second. Decoding such a message into structures costs more than everything else on the
// path, and most of the time only two or three members matter while the long string is
// passed on unchanged. This package therefore offers the few operations that need no
// reflection: walk the members of one object, quote a string, unquote one, check one
// without decoding it, and read an integer.
//
//	err := jsonspan.Object(msg, func(key, value []byte) error {
//	if string(key) == "method" {
//	method = value // still in its quotes; aliases msg
//	}
//	return nil
//	})
//
// Validity is the same as for encoding/json, including that invalid UTF-8 in a string is
// accepted and reads as U+FFFD; only nesting is bounded more tightly. It is not a general
// decoder: for structures use encoding/json.
//
// All functions are safe for concurrent use and keep no reference to their arguments.
// Errors carry an offset and never a piece of the input, because the input may be a
// person's terminal.
package jsonspan

import (
	"errors"
	"fmt"
)

// MaxDepth is how deeply arrays and objects may be nested, the outermost one included.
// AHP needs fewer than 16 levels; the bound keeps a hostile message from using up the
// stack.
const MaxDepth = 64

// ErrNotObject is returned by [Object] for one valid JSON value that is not an object. A
// JSON-RPC peer answers it differently from text that is not JSON.
var ErrNotObject = errors.New("jsonspan: not a JSON object")

// Object calls f for every member of the one JSON object in data, in order, duplicates
// included. key is the text between the key's quotes, decoded if it holds an escape or
// invalid UTF-8. value is the value's text without surrounding space; both are valid
// until data changes, a decoded key only until f returns. The value null counts as an
// object without members, as it does for encoding/json.
//
// An error of f ends the walk and is returned unchanged. Since the walk reads data once,
// f may have been called before a later error is found: act on f's findings only after
// Object returned nil.
func Object(data []byte, f func(key, value []byte) error) error {
	return BoundedObject(data, 0, f)
}

// ErrTooMany is returned by [BoundedObject] for an object with too many values.
var ErrTooMany = errors.New("jsonspan: too many values")

// BoundedObject is [Object] for an object that may hold at most max values, at any depth;
// 0 means any number. Structures that encoding/json fills from it take memory by the
// number of values, not by the size of the text: a list of a million empty objects has 3
// MB and decodes to some 100.
func BoundedObject(data []byte, max int, f func(key, value []byte) error) error {
	s := scanner{data: data, max: max}
	s.skipSpace()
	if s.peek() != '{' {
		return notObject(&s)
	}
	if err := s.members(1, f); err != nil {
		return err
	}
	return s.end()
}

// notObject validates the value at s, which does not begin with a brace.
func notObject(s *scanner) error {
	null := s.peek() == 'n'
	if err := s.value(0); err != nil {
		return err
	}
	if err := s.end(); err != nil {
		return err
	}
	if null {
		return nil
	}
	return ErrNotObject
}

// Valid reports whether data is one JSON value within [MaxDepth].
func Valid(data []byte) bool {
	s := scanner{data: data}
	s.skipSpace()
	return s.value(0) == nil && s.end() == nil
}

// A syntaxError is the fault of a text and its place, in bytes from the beginning.
type syntaxError struct {
	what   string
	offset int
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("jsonspan: %s at byte %d", e.what, e.offset)
}
