package config

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// WriteTo writes c as a file that Parse reads to the same, every key with its value. It
// implements io.WriterTo.
func (c *Config) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, c.text(func(string) string { return "" }))
	return int64(n), err
}

// WriteFrom is WriteTo with a comment for each value that says where it comes from, see
// [Origins].
func (c *Config) WriteFrom(w io.Writer, from map[string]Source) error {
	_, err := io.WriteString(w, c.text(func(key string) string { return "  # " + string(cmp.Or(from[key], FromDefault)) }))
	return err
}

// text is the file, with a note for each key.
func (c *Config) text(note func(key string) string) string {
	var b strings.Builder
	writeTable(&b, reflect.ValueOf(c).Elem(), "", note)
	return strings.TrimPrefix(b.String(), "\n")
}

// writeTable writes the keys of a table before the tables in it, as TOML wants.
func writeTable(b *strings.Builder, v reflect.Value, name string, note func(key string) string) {
	fields := fieldsOf(v.Type())
	for _, f := range fields {
		if x := v.Field(f.index); !holdsTables(x.Type()) && !unset(x, &f) {
			fmt.Fprintf(b, "%s = %s%s\n", f.key, written(x), note(name+"."+f.key))
		}
	}
	for _, f := range fields {
		x := v.Field(f.index)
		path := strings.TrimPrefix(name+"."+f.key, ".")
		switch {
		case !holdsTables(x.Type()):
		case x.Kind() == reflect.Struct:
			fmt.Fprintf(b, "\n[%s]\n", path)
			writeTable(b, x, path, note)
		default: // the list has one place where it comes from
			for i := range x.Len() {
				fmt.Fprintf(b, "\n[[%s]]%s\n", path, note(path))
				writeTable(b, x.Index(i), path, func(string) string { return "" })
			}
		}
	}
}

// unset reports whether a key of a table in a list was left out, and has no default that
// could stand there.
func unset(v reflect.Value, f *field) bool {
	return v.Kind() == reflect.Slice && v.IsNil() || (f.words != nil || f.bounds.lo > 0) && v.IsZero()
}

func holdsTables(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct
}

// quoted writes a basic string of TOML 1.0.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
