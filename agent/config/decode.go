package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"

	"tether/internal/clip"
	"tether/internal/textfile"
)

// Problem is one fault of a configuration.
type Problem struct {
	From string // the variable or flag; "" for the file
	Line int    // from 1; 0 if the fault is in no particular line
	Key  string // "terminals.log_bytes"; "" if the fault belongs to no key
	Text string // the fault and the valid values
}

// Error is every problem of a configuration: those of the file, in the order of lines,
// and of variables and flags. There is at least one.
type Error struct {
	Path     string
	Problems []Problem
}

// Error has one line per problem.
func (e *Error) Error() string {
	var lines []string
	for _, p := range e.Problems {
		at := e.Path
		if p.Line > 0 {
			at += ":" + strconv.Itoa(p.Line)
		}
		if p.Key != "" {
			at += ": " + p.Key
		}
		if p.From != "" {
			at = p.From
		}
		lines = append(lines, at+": "+p.Text)
	}
	return strings.Join(lines, "\n")
}

// maxProblems is how many problems are reported; more would not help.
const maxProblems = 20

// parse reads a file's text, and then over, on top of the defaults. path is for errors,
// which are an *Error.
func parse(path string, data []byte, over []Setting) (Config, error) {
	c := Default()
	data, err := textfile.Decode(data)
	if err != nil {
		return c, &Error{path, []Problem{{Text: err.Error()}}}
	}
	var raw map[string]any
	if err := toml.Unmarshal(data, &raw); err != nil {
		return c, &Error{path, []Problem{syntaxProblem(err)}}
	}
	d := decoder{lines: positionsIn(data)}
	root := reflect.ValueOf(&c).Elem()
	d.table(root, raw, nil)
	set := d.settings(root, over)
	if len(d.problems) == 0 {
		for _, p := range c.relations() {
			if s, ok := set[p.Key]; ok {
				p.From = s.String()
			} else {
				p.Line = d.lines.of(strings.Split(p.Key, "."))
			}
			d.problems = append(d.problems, p)
		}
	}
	if len(d.problems) == 0 {
		return c, nil
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	return c, &Error{path, d.problems[:min(len(d.problems), maxProblems)]}
}

func syntaxProblem(err error) Problem {
	text := printable(strings.TrimPrefix(err.Error(), "toml: "))
	if where, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := where.Position()
		return Problem{Line: line, Text: fmt.Sprintf("column %d: not TOML: %s", column, text)}
	}
	return Problem{Text: "not TOML: " + text}
}

// decoder moves the TOML library's values into a Config.
type decoder struct {
	lines    positions
	from     string // the setting that is being moved; "" for the file
	problems []Problem
}

func (d *decoder) problem(path []string, format string, args ...any) {
	p := Problem{From: d.from, Key: printable(join(path)), Text: fmt.Sprintf(format, args...)}
	if p.From == "" {
		p.Line = d.lines.of(path)
	}
	d.problems = append(d.problems, p)
}

// wrong is problem for a value that the key does not accept: it adds the key's meaning.
func (d *decoder) wrong(path []string, format string, args ...any) {
	name := ""
	for i, part := range path {
		switch _, err := strconv.Atoi(part); {
		case err == nil:
			if i+1 < len(path) {
				name += "[]"
			}
		case i > 0:
			name += "." + part
		default:
			name = part
		}
	}
	if meaning := meanings()[name]; meaning != "" {
		format, args = format+" (%s)", append(args, meaning)
	}
	d.problem(path, format, args...)
}

// table sets the fields of the struct v.
func (d *decoder) table(v reflect.Value, raw map[string]any, path []string) {
	fields := fieldsOf(v.Type())
	for key, value := range raw {
		at := append(path[:len(path):len(path)], key)
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		if former, ok := value.(map[string]any); ok && join(at) == "policy.acp" {
			d.problem(at, "there is no such section any more; use %s", formerACP(former))
			continue
		}
		if i < 0 {
			d.unknown(at, fields)
			continue
		}
		d.value(v.Field(fields[i].index), &fields[i], value, at)
	}
}

// unknown reports an unknown key, with the key that may have been meant: one of this
// table, or one of that name in another.
func (d *decoder) unknown(path []string, fields []field) {
	own := make([]string, len(fields))
	for i, f := range fields {
		own[i] = f.key
	}
	last := path[len(path)-1]
	what := "there is no such key"
	if len(path) == 1 {
		what = "there is no such section"
	}
	if near := Nearest(last, own); near != "" {
		d.problem(path, "%s; did you mean %s?", what, join(append(path[:len(path)-1:len(path)-1], near)))
		return
	}
	for _, k := range Keys() {
		if strings.HasSuffix(k.Name, "."+last) {
			d.problem(path, "%s; did you mean %s?", what, k.Name)
			return
		}
	}
	d.problem(path, "%s; there are %s", what, strings.Join(own, ", "))
}

// value sets one field.
func (d *decoder) value(v reflect.Value, f *field, raw any, path []string) {
	t := v.Type()
	switch x := raw.(type) {
	case map[string]any:
		if t.Kind() == reflect.Struct {
			d.table(v, x, path)
			return
		}
	case []any:
		if t.Kind() == reflect.Slice {
			d.list(v, f, x, path)
			return
		}
	case string:
		if t == typeSize || t == typeDuration || t == typePort || t.Kind() == reflect.String {
			d.text(v, f, x, path)
			return
		}
	case int64:
		if t.Kind() == reflect.Int {
			d.number(v, f, x, path)
			return
		}
	case bool:
		if t.Kind() == reflect.Bool {
			v.SetBool(x)
			return
		}
	}
	d.wrong(path, "%s is not %s%s", shown(raw), withArticle(kind(t)), f.hint(t))
}

// withArticle returns the name of a kind with a or an before it.
func withArticle(kind string) string {
	if kind == "integer" {
		return "an " + kind
	}
	return "a " + kind
}

// list replaces a slice: the file's value replaces the default.
func (d *decoder) list(v reflect.Value, f *field, raw []any, path []string) {
	out := reflect.MakeSlice(v.Type(), len(raw), len(raw))
	for i, x := range raw {
		d.value(out.Index(i), f, x, append(path[:len(path):len(path)], strconv.Itoa(i)))
	}
	v.Set(out)
}

func (d *decoder) text(v reflect.Value, f *field, s string, path []string) {
	switch v.Type() {
	case typeSize:
		n, err := ParseSize(s)
		if err != nil {
			d.wrong(path, "%s is not a size: %v", shown(s), err)
			return
		}
		d.number(v, f, int64(n), path)
	case typeDuration:
		n, err := ParseDuration(s)
		if err != nil {
			d.wrong(path, "%s is not a duration: %v", shown(s), err)
			return
		}
		d.number(v, f, int64(n), path)
	case typePort:
		if !slices.Contains(f.words, s) {
			d.wrong(path, "%s must be %s", shown(s), f.allowed(v.Type()))
			return
		}
		for port, word := range portWords {
			if word == s {
				v.SetInt(int64(port))
			}
		}
	default:
		if f.words != nil && !slices.Contains(f.words, s) {
			d.wrong(path, "%s must be one of %s", shown(s), f.allowed(v.Type()))
			return
		}
		v.SetString(s)
	}
}

func (d *decoder) number(v reflect.Value, f *field, n int64, path []string) {
	if f.bounds.lo != f.bounds.hi && (n < f.bounds.lo || n > f.bounds.hi) {
		d.wrong(path, "%s is out of range: %s", literal(v.Type(), n), f.allowed(v.Type()))
		return
	}
	v.SetInt(n)
}

// hint shows how a value of the type is written.
func (f *field) hint(t reflect.Type) string {
	switch {
	case t == typeSize:
		return `: write it as a string with a unit, such as "64MiB"`
	case t == typeDuration:
		return `: write it as a string with a unit, such as "30s"`
	case t.Kind() == reflect.Bool:
		return ": true or false"
	case f.allowed(t) != "":
		return ": " + f.allowed(t)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return ": write its name in double brackets"
	}
	return ""
}

// shown returns a value as errors show it: short, and safe for a terminal.
func shown(raw any) string {
	switch x := raw.(type) {
	case string:
		return strconv.Quote(brief(x))
	case map[string]any:
		return "a table"
	case []any:
		return "a list"
	}
	return printable(brief(fmt.Sprint(raw)))
}

// brief cuts a value or key so that it is short enough for an error.
func brief(s string) string { return clip.Marked(s, 60) }

// printable makes text from the file safe to print in a message.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
