package config

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Prefix begins the environment variables of keys, and tether's others.
const Prefix = "TETHER_"

// Source says where a key's value comes from.
type Source string

// The sources. A later one in this list overrides an earlier one.
const (
	FromDefault     Source = "default"
	FromAllowRoot   Source = "allow-root" // lend.as_root, by a person who has allowed a daemon of root
	FromFile        Source = "file"
	FromEnvironment Source = "environment"
	FromFlag        Source = "flag"
)

// Setting is a key's value from outside of the file.
type Setting struct {
	Key    string
	Value  string // a list as in TOML, or one element of it; all else without quotes
	Source Source
}

// String is the setting's name as the person wrote it, without the value.
func (s Setting) String() string {
	if s.Source == FromFlag {
		return "--" + s.Key
	}
	return variable(s.Key)
}

// Variable is the name of the key's environment variable, such as TETHER_TERMINALS_LOG_BYTES. The key itself is the name of its flag:
// --terminals.log_bytes. Tables in lists have neither, and "" is returned for them: they have several keys, and some hold commands and variables,
// which do not belong on a command line that others can read.
func (k Key) Variable() string {
	if k.listed() {
		return ""
	}
	return variable(k.Name)
}

func (k Key) listed() bool {
	return strings.Contains(k.Name, "[]") || k.Kind == "list of tables"
}

func variable(key string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// FromEnv returns the settings of an environment, in the order of the keys. An empty variable counts as unset. An unknown variable that
// looks like a key's is a problem: it begins with a section's name, or is most like one of them. Others that begin with Prefix are strange,
// except known ones.
func FromEnv(env []string, known ...string) (set []Setting, strange []string, wrong []Problem) {
	variables := map[string]string{} // key by name without the prefix
	var names []string
	for _, k := range Keys() {
		if name := k.Variable(); name != "" {
			names = append(names, strings.TrimPrefix(name, Prefix))
			variables[names[len(names)-1]] = k.Name
		}
	}
	for _, e := range env {
		full, value, _ := strings.Cut(e, "=")
		name, ours := strings.CutPrefix(full, Prefix)
		switch {
		case !ours || value == "" || slices.Contains(known, full):
		case variables[name] != "":
			set = append(set, Setting{variables[name], value, FromEnvironment})
		default:
			near := Nearest(name, names)
			if near == "" && !ofSection(name, names) {
				strange = append(strange, full)
				continue
			}
			text := "there is no such variable; tether config view lists the keys"
			if near != "" {
				text = "there is no such variable; did you mean " + Prefix + near + "?"
			}
			wrong = append(wrong, Problem{From: printable(brief(full)), Text: text})
		}
	}
	order := func(name string) int {
		return slices.IndexFunc(names, func(n string) bool { return variables[n] == name })
	}
	slices.SortStableFunc(set, func(a, b Setting) int { return cmp.Compare(order(a.Key), order(b.Key)) })
	return set, strange, wrong
}

// ofSection reports whether a name begins like those of a section.
func ofSection(name string, names []string) bool {
	section, _, more := strings.Cut(name, "_")
	return more && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, section+"_") })
}

// settings overrides values of the file with outside ones, and returns the keys.
func (d *decoder) settings(root reflect.Value, over []Setting) map[string]Setting {
	set := map[string]Setting{}
	for _, s := range over {
		d.from = s.String()
		path := strings.Split(s.Key, ".")
		v, f := find(root, path)
		if f == nil || holdsTables(v.Type()) {
			d.problem(path, "there is no such key")
		} else {
			d.value(v, f, outside(v.Type(), s.Value), path)
		}
		set[s.Key] = s
	}
	d.from = ""
	return set
}

// find returns the field of a key, or nil.
func find(v reflect.Value, path []string) (reflect.Value, *field) {
	fields := fieldsOf(v.Type())
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == path[0] })
	switch {
	case i < 0:
		return v, nil
	case len(path) == 1:
		return v.Field(fields[i].index), &fields[i]
	case v.Field(fields[i].index).Kind() != reflect.Struct:
		return v, nil
	}
	return find(v.Field(fields[i].index), path[1:])
}

// outside converts a value to the type that the TOML library would return. A value of another kind stays a string, which the decoder
// refuses.
func outside(t reflect.Type, s string) any {
	switch {
	case t == typeSize || t == typeDuration:
	case t.Kind() == reflect.Bool:
		if b, err := strconv.ParseBool(s); err == nil {
			return b
		}
	case t.Kind() == reflect.Int:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
	case t.Kind() == reflect.Slice:
		return outsideList(s)
	}
	return s
}

func outsideList(s string) any {
	switch {
	case s == "":
		return []any{}
	case !strings.HasPrefix(s, "["):
		return []any{s}
	}
	var raw map[string]any
	if err := toml.Unmarshal([]byte("x = "+s), &raw); err != nil || len(raw) != 1 {
		return s
	}
	return raw["x"]
}

// Nearest returns the word most like s, if s may be a misspelling of it: their distance is at most a third of the length of s, plus 1.
// Otherwise it returns "".
func Nearest(s string, words []string) string {
	best, least := "", len(s)/3+2
	for _, w := range words {
		if d := distance(s, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// maxCompared is how many bytes of a word are compared.
const maxCompared = 64

// distance is the number of letters to insert, delete, replace or swap with their neighbour that makes b of a (optimal string alignment).
func distance(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
	var rows [3][maxCompared + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			d := min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
