package config

import (
	_ "embed" // of meanings.txt
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Key is one key of the file, for lists and documents.
type Key struct {
	Name    string // with its section: "terminals.log_bytes"
	Kind    string // size, duration, integer, bool, string, or list of …
	Value   string // as the file would have it: "\"4MiB\""
	Allowed string // "64KiB to 1GiB", "lag, hold", "" if anything goes
	Meaning string // its effect, in a few words
}

// Words returns the allowed values of a key with a fixed set of words, nil for other
// keys.
func (k Key) Words() []string {
	switch {
	case k.Kind == "bool":
		return []string{"true", "false"}
	case k.Kind == "string" && k.Allowed != "":
		return strings.Split(k.Allowed, ", ")
	}
	return nil
}

//go:embed meanings.txt
var meaningsText string

// meanings describe the effects of the keys.
var meanings = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(meaningsText) {
		if key, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && line[0] != '#' {
			all[key] = text
		}
	}
	return all
})

// Keys returns all keys with the values of the default, section by section. Keys of
// tables in lists have the list's name and [] before theirs, and their zero value.
func Keys() []Key {
	c := Default()
	return c.Keys()
}

// Keys returns all keys with the values of c.
func (c *Config) Keys() []Key {
	var all []Key
	walk(reflect.ValueOf(c).Elem(), "", &all)
	return all
}

func walk(v reflect.Value, prefix string, all *[]Key) {
	for _, f := range fieldsOf(v.Type()) {
		x, name := v.Field(f.index), prefix+f.key
		switch t := x.Type(); {
		case t.Kind() == reflect.Struct:
			walk(x, name+".", all)
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			*all = append(*all, Key{Name: name, Kind: kind(t), Value: strconv.Itoa(x.Len()), Meaning: meanings()[name]})
			walk(reflect.Zero(t.Elem()), name+"[].", all)
		default:
			*all = append(*all, Key{Name: name, Kind: kind(t), Value: written(x), Allowed: f.allowed(t), Meaning: meanings()[name]})
		}
	}
}

// written returns a value in TOML.
func written(v reflect.Value) string {
	switch t := v.Type(); {
	case t == typeSize, t == typeDuration:
		return `"` + literal(t, v.Int()) + `"`
	case t == typePort && v.Int() < 0:
		return quoted(literal(t, v.Int()))
	case t.Kind() == reflect.Int:
		return literal(t, v.Int())
	case t.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case t.Kind() == reflect.String:
		return quoted(v.String())
	}
	items := make([]string, v.Len())
	for i := range items {
		items[i] = written(v.Index(i))
	}
	return "[" + strings.Join(items, ", ") + "]"
}
