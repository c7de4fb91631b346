package config

import (
	"maps"
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
		return "--set " + s.Key
	}
	return variable(s.Key)
}

// Settable reports whether a setting may give the key a value. Tables in lists are in the
// file only: they have several keys, and some hold commands and variables, which do not
// belong on a command line that others can read.
func (k Key) Settable() bool {
	return !strings.Contains(k.Name, "[]") && k.Kind != "list of tables"
}

// SettableKeys are the names of these keys.
func SettableKeys() (names []string) {
	for _, k := range Keys() {
		if k.Settable() {
			names = append(names, k.Name)
		}
	}
	return names
}

// Variable is the name of the key's environment variable, "" for almost all: containers
// need those of lend.as_root and local.listen, where commands start the daemon and nobody
// writes a file.
func (k Key) Variable() string {
	if inVariable(k.Name) {
		return variable(k.Name)
	}
	return ""
}

func inVariable(key string) bool { return key == "lend.as_root" || key == "local.listen" }

func variable(key string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// FromEnv returns the settings of an environment. An empty variable counts as unset. A
// variable that is most like the name of a key, or begins with a section's, as all keys
// had variables once, is a problem, as is one of an old name: nothing that somebody has
// set is ignored. Others that begin with Prefix are strange, except known ones.
func FromEnv(env []string, known ...string) (set []Setting, strange []string, wrong []Problem) {
	keys := map[string]string{} // by name of the variable without the prefix
	for _, key := range SettableKeys() {
		keys[strings.TrimPrefix(variable(key), Prefix)] = key
	}
	names := slices.Sorted(maps.Keys(keys))
	for _, e := range env {
		full, value, _ := strings.Cut(e, "=")
		name, ours := strings.CutPrefix(full, Prefix)
		if !ours || value == "" || slices.Contains(known, full) {
			continue
		}
		switch near := Nearest(name, names); {
		case name == "HOLDERS":
			wrong = append(wrong, Problem{From: full, Text: "terminals always have a holder now; unset this variable"})
		case strings.HasPrefix(name, formerPrefix):
			rule := strings.ToLower(strings.TrimPrefix(name, formerPrefix))
			wrong = append(wrong, Problem{From: printable(brief(full)), Text: "keys of the configuration have no variables; use tether daemon --set '" + formerACP(map[string]any{rule: value}) + "', or the file"})
		case inVariable(keys[name]):
			set = append(set, Setting{keys[name], value, FromEnvironment})
		case near != "":
			wrong = append(wrong, Problem{From: printable(brief(full)), Text: "keys of the configuration have no variables; use tether daemon --set " + keys[near] + "=" + printable(brief(value)) + ", or the file"})
		case ofSection(name, names):
			wrong = append(wrong, Problem{From: printable(brief(full)), Text: "there is no such variable; tether config keys lists the keys, for tether daemon --set KEY=VALUE and the file"})
		default:
			strange = append(strange, full)
		}
	}
	return set, strange, wrong
}

// formerPrefix began the variables of policy.acp, which was a section.
const formerPrefix = "POLICY_ACP_"

// ofSection reports whether a name begins like those of a section.
func ofSection(name string, names []string) bool {
	section, _, more := strings.Cut(name, "_")
	return more && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, section+"_") })
}

// settings overrides values of the file with outside ones, and returns the keys.
func (d *decoder) settings(root reflect.Value, over []Setting) map[string]Setting {
	set := map[string]Setting{}
	for _, s := range over {
		d.from = printable(brief(s.String()))
		path := strings.Split(s.Key, ".")
		v, f := find(root, path)
		switch {
		case f == nil && len(path) == 3 && strings.HasPrefix(s.Key, "policy.acp."):
			d.problem(path, "there is no such key any more; use --set '%s'", formerACP(map[string]any{path[2]: s.Value}))
		case f == nil:
			text := "there is no such key; tether config keys lists them"
			if near := Nearest(s.Key, SettableKeys()); near != "" {
				text = "there is no such key; did you mean " + near + "?"
			}
			d.problem(path, "%s", text)
		case holdsTables(v.Type()):
			d.problem(path, "only the file can have it")
		default:
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

// outside converts a value to the type that the TOML library would return. A value of
// another kind stays a string, which the decoder refuses.
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

// Nearest returns the word most like s, if s may be a misspelling of it: their distance
// is at most a third of the length of s, plus 1. Otherwise it returns "".
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

// distance is the number of letters to insert, delete, replace or swap with their
// neighbour that makes b of a (optimal string alignment).
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
