package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// field is one field of a section: the schema is nothing but the structs and their tags.
type field struct {
	key    string // as in the file
	index  int
	bounds bounds
	words  []string // the allowed strings; nil for any
}

// bounds are the bounds of a number, in the unit of its type. Without any, lo equals hi.
type bounds struct{ lo, hi int64 }

var (
	typeSize     = reflect.TypeFor[Size]()
	typeDuration = reflect.TypeFor[Duration]()
	typePort     = reflect.TypeFor[Port]()
)

// fieldsOf returns the fields of a section's type in order. It panics for tags that make
// no sense: a test walks all of them.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		out := field{key: f.Tag.Get("toml"), index: i}
		if out.key == "" {
			panic(fmt.Sprintf("config: %s.%s has no key", t, f.Name))
		}
		if words := f.Tag.Get("oneof"); words != "" {
			out.words = strings.Fields(words)
		}
		if text := f.Tag.Get("range"); text != "" {
			lo, hi, _ := strings.Cut(text, "..")
			out.bounds = bounds{mustNumber(f.Type, lo), mustNumber(f.Type, hi)}
		}
		all = append(all, out)
	}
	return all
}

// mustNumber reads a bound in the notation of its type.
func mustNumber(t reflect.Type, s string) int64 {
	var n int64
	var err error
	switch t {
	case typeSize:
		var v Size
		v, err = ParseSize(s)
		n = int64(v)
	case typeDuration:
		var v Duration
		v, err = ParseDuration(s)
		n = int64(v)
	default:
		n, err = strconv.ParseInt(s, 10, 64)
	}
	if err != nil {
		panic(fmt.Sprintf("config: bound %q: %v", s, err))
	}
	return n
}

// allowed describes the values that the field accepts, each of them if it is a list.
func (f *field) allowed(t reflect.Type) string {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case t == typePort:
		return f.words[0] + ", or " + literal(t, f.bounds.lo) + " to " + literal(t, f.bounds.hi)
	case len(f.words) > 0:
		return strings.Join(f.words, ", ")
	case f.bounds.lo == f.bounds.hi:
		return ""
	}
	return literal(t, f.bounds.lo) + " to " + literal(t, f.bounds.hi)
}

// literal writes a number of the type t without quotes.
func literal(t reflect.Type, n int64) string {
	switch t {
	case typeSize:
		return Size(n).String()
	case typeDuration:
		return Duration(n).String()
	case typePort:
		return Port(n).String()
	}
	return strconv.FormatInt(n, 10)
}

// kind describes how a type is written.
func kind(t reflect.Type) string {
	switch {
	case t == typeSize:
		return "size"
	case t == typeDuration:
		return "duration"
	case t == typePort:
		return "port"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.String:
		return "string"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Struct:
		return "table"
	case reflect.Slice:
		return "list of " + kind(t.Elem()) + "s"
	}
	panic("config: no kind of value for " + t.String())
}
