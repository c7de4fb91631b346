package progentry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"tether/internal/textfile"
)

// Entry says how the program is started. Args must not be empty.
type Entry struct {
	Command string
	Args    []string
	Env     map[string]string // nil for none
}

// Format says how a configuration file lists entries.
type Format struct {
	TOML    bool   // TOML; otherwise JSON, which may have comments
	Section string // the member or table with the entries, by name
	Style   Style
}

// Style is the form of an entry in the file.
type Style int

// The forms.
const (
	Plain   Style = iota // command, args, env
	Typed                // Plain with "type": "stdio"
	Local                // for OpenCode: "type": "local", command as a list with the arguments, environment
	Path                 // for VS Code's terminals: path, args
	Program              // for Alacritty: program, args
	Nested               // for Zed's terminals: Program in "with_arguments"
)

// command is the name of the member with the program's path.
func (s Style) command() string {
	switch s {
	case Path:
		return "path"
	case Program, Nested:
		return "program"
	}
	return "command"
}

// ErrOther is returned by Add if the file has an entry of that name that starts something
// else.
var ErrOther = errors.New("the file has another entry of that name")

// errUnsafe is returned if the edit would change something else, or this package cannot
// make it.
var errUnsafe = errors.New("the file is written in a way that cannot be edited safely: add the entry by hand")

// Has reports whether a file has an entry, under any name, that starts a program with the
// base name of program and the first argument first.
func (f Format) Has(text []byte, program, first string) (bool, error) {
	text, err := textfile.Decode(text)
	if err != nil {
		return false, err
	}
	all, err := f.all(text)
	if err != nil {
		return false, err
	}
	for _, v := range all {
		if starts(v, program, first) {
			return true, nil
		}
	}
	return false, nil
}

// Add returns the text with the entry added, or the text unchanged if it has that
// entry. An empty text is a new file. Errors: ErrOther, or that the text is invalid or
// cannot be edited without other changes.
func (f Format) Add(text []byte, name string, e Entry) ([]byte, error) {
	return behindMark(text, func(text []byte) ([]byte, error) { return f.added(text, name, e) })
}

func (f Format) added(text []byte, name string, e Entry) ([]byte, error) {
	all, err := f.all(text)
	if err != nil {
		return nil, err
	}
	if old, ok := all[name]; ok {
		if starts(old, filepath.Base(e.Command), e.Args[0]) {
			return text, nil
		}
		return nil, ErrOther
	}
	out, err := f.add(text, name, e)
	if err != nil {
		return nil, err
	}
	return out, f.check(text, out, name)
}

// Remove returns the text without the entry of that name. If there is none, or it does
// not start this program with this first argument, the text is returned unchanged. If the
// section has no other entry and no comment before this one, the section is removed. The
// errors are those of Add, except ErrOther.
func (f Format) Remove(text []byte, name, program, first string) ([]byte, error) {
	return behindMark(text, func(text []byte) ([]byte, error) { return f.removed(text, name, program, first) })
}

func (f Format) removed(text []byte, name, program, first string) ([]byte, error) {
	all, err := f.all(text)
	if err != nil || all[name] == nil || !starts(all[name], program, first) {
		return text, err
	}
	if f.TOML {
		out := removeTable(text, f.Section, name)
		return out, f.check(out, text, name)
	}
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	top := d.root.Value.(*hujson.Object)
	i := find(top, f.Section)
	inner := top.Members[i].Value.Value.(*hujson.Object)
	if len(inner.Members) == 1 && inner.Members[0].Name.BeforeExtra.IsStandard() {
		remove(top, i)
	} else {
		remove(inner, find(inner, name))
	}
	out := d.pack()
	return out, f.check(out, text, name)
}

// behindMark returns the text with its byte order mark, if it has one, and the edited
// text behind it.
func behindMark(text []byte, edit func([]byte) ([]byte, error)) ([]byte, error) {
	body, err := textfile.Decode(text)
	if err != nil {
		return nil, err
	}
	out, err := edit(body)
	if err != nil {
		return nil, err
	}
	return slices.Concat(text[:len(text)-len(body)], out), nil
}

// Empty reports whether a text is an empty document: nothing but a byte order mark, white
// space and perhaps "{}".
func Empty(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte(textfile.Mark))
	compact := strings.Join(strings.Fields(string(text)), "")
	return compact == "" || compact == "{}"
}

// add returns the text with the entry added. The text has no entry of that name.
func (f Format) add(text []byte, name string, e Entry) ([]byte, error) {
	if f.TOML {
		return f.appendTable(text, name, e), nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n}\n")
	}
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	top := d.root.Value.(*hujson.Object)
	if i := find(top, f.Section); i >= 0 {
		d.insert(&top.Members[i].Value, name, f.value(e))
	} else {
		d.insert(&d.root, f.Section, "{\n\t"+string(hujson.String(name))+": "+strings.ReplaceAll(f.value(e), "\n", "\n\t")+"\n}")
	}
	return d.pack(), nil
}

// value returns the entry as JSON, indented by tabs.
func (f Format) value(e Entry) string {
	var lines []string
	put := func(name string, v any) {
		lines = append(lines, fmt.Sprintf("\t%q: %s", name, strings.ReplaceAll(quote(v), `","`, `", "`)))
	}
	env := "env"
	switch f.Style {
	case Typed:
		put("type", "stdio")
	case Local:
		put("type", "local")
		env = "environment"
	}
	if f.Style == Local {
		put("command", append([]string{e.Command}, e.Args...))
	} else {
		put(f.Style.command(), e.Command)
		put("args", e.Args)
	}
	if len(e.Env) > 0 {
		put(env, e.Env)
	}
	value := "{\n" + strings.Join(lines, ",\n") + "\n}"
	if f.Style == Nested {
		return "{\n\t\"with_arguments\": " + strings.ReplaceAll(value, "\n", "\n\t") + "\n}"
	}
	return value
}

// all returns the entries in the text, decoded, by name.
func (f Format) all(text []byte) (map[string]any, error) {
	document, err := f.document(text)
	if err != nil {
		return nil, err
	}
	section, ok := document[f.Section]
	all, isObject := section.(map[string]any)
	if ok && !isObject {
		return nil, errUnsafe
	}
	return all, nil
}

// document returns the whole text, decoded.
func (f Format) document(text []byte) (map[string]any, error) {
	switch {
	case f.TOML:
		return tables(text)
	case len(bytes.TrimSpace(text)) == 0:
		return map[string]any{}, nil
	}
	return plain(text)
}

// check returns nil if the two texts differ only in the entry called name, which with
// has. Otherwise it returns errUnsafe.
func (f Format) check(without, with []byte, name string) error {
	a, err := f.document(without)
	if err != nil {
		return errUnsafe
	}
	b, err := f.document(with)
	if err != nil {
		return errUnsafe
	}
	all, _ := b[f.Section].(map[string]any)
	if all[name] == nil {
		return errUnsafe
	}
	delete(all, name)
	for _, document := range []map[string]any{a, b} { // an empty section counts as none
		if section, ok := document[f.Section].(map[string]any); ok && len(section) == 0 {
			delete(document, f.Section)
		}
	}
	if !reflect.DeepEqual(a, b) {
		return errUnsafe
	}
	return nil
}

// starts reports whether a decoded entry starts a program with the base name of program
// and the first argument first.
func starts(entry any, program, first string) bool {
	s, _ := entry.(map[string]any)
	for _, inner := range []string{"transport", "with_arguments"} { // the first as Cline writes servers; it reads the other form, too
		if t, ok := s[inner].(map[string]any); ok {
			s = t
		}
	}
	var argv []string
	switch command := cmp.Or(s["command"], s["path"], s["program"]).(type) {
	case string:
		argv = append(argv, command)
	case []any:
		argv = append(argv, words(command)...)
	}
	args, _ := s["args"].([]any)
	argv = append(argv, words(args)...)
	base := func(path string) string {
		return strings.TrimSuffix(path[strings.LastIndexAny(path, `/\`)+1:], ".exe")
	}
	return len(argv) > 1 && base(argv[0]) == base(program) && argv[1] == first
}

func words(list []any) (all []string) {
	for _, v := range list {
		s, _ := v.(string)
		all = append(all, s)
	}
	return all
}

func names(env map[string]string) []string { return slices.Sorted(maps.Keys(env)) }
