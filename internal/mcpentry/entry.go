package mcpentry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Entry is how a server is started.
type Entry struct {
	Command string
	Args    []string
	Env     map[string]string // nil for none
}

// Format is how a program keeps its MCP servers.
type Format struct {
	TOML    bool   // else JSON, with comments allowed
	Section string // the member or table that has the servers by name
	Style   Style
}

// Style is the form of one server.
type Style int

// The forms.
const (
	Plain Style = iota // command, args, env
	Typed              // the same, with "type": "stdio"
	Local              // OpenCode's: "type": "local", command with its arguments, environment
)

// ErrOther: the file has a server of that name that is another one.
var ErrOther = errors.New("the file has another server of that name")

// errUnsafe: the edit would change something else, or is one that this package cannot make.
var errUnsafe = errors.New("the file is written in a way that cannot be edited safely: add the entry by hand")

// Has reports whether a file has a server, under any name, that starts a program with this base name and this first argument.
func (f Format) Has(text []byte, program, first string) (bool, error) {
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

// Add returns the text with the server in it, or unchanged if it has that server. An empty text is a new file. Errors: ErrOther, or that
// the text is not valid, or cannot be edited without touching something else.
func (f Format) Add(text []byte, name string, e Entry) ([]byte, error) {
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

// Remove returns the text without the server of that name if it starts this program; otherwise the text unchanged. The rest of a section
// without servers is removed too. Errors are those of Add.
func (f Format) Remove(text []byte, name, program, first string) ([]byte, error) {
	all, err := f.all(text)
	if err != nil || all[name] == nil || !starts(all[name], program, first) {
		return text, err
	}
	if f.TOML {
		out := removeTable(text, f.Section, name)
		return out, f.check(out, text, name)
	}
	top, inner, err := servers(text, f.Section)
	if err != nil {
		return nil, err
	}
	var out []byte
	if len(inner.members) == 1 && !bytes.Contains(text[inner.open:inner.members[0].start], []byte("/")) {
		out = remove(text, top, f.Section)
	} else {
		out = remove(text, *inner, name)
	}
	return out, f.check(out, text, name)
}

// Empty reports whether a text has nothing but an empty document.
func Empty(text []byte) bool {
	compact := strings.Join(strings.Fields(string(text)), "")
	return compact == "" || compact == "{}"
}

// add makes the edit.
func (f Format) add(text []byte, name string, e Entry) ([]byte, error) {
	if f.TOML {
		return appendTable(text, f.Section, name, e), nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n}\n")
	}
	top, inner, err := servers(text, f.Section)
	if err != nil {
		return nil, err
	}
	if inner != nil {
		return insert(text, *inner, name, f.value(e)), nil
	}
	quoted, _ := json.Marshal(name)
	return insert(text, top, f.Section, "{\n\t"+string(quoted)+": "+strings.ReplaceAll(f.value(e), "\n", "\n\t")+"\n}"), nil
}

// value is the entry as JSON, indented by tabs.
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
		put("command", e.Command)
		put("args", e.Args)
	}
	if len(e.Env) > 0 {
		put(env, e.Env)
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n}"
}

// all are the servers by name, decoded.
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

func (f Format) document(text []byte) (map[string]any, error) {
	switch {
	case f.TOML:
		return tables(text)
	case len(bytes.TrimSpace(text)) == 0:
		return map[string]any{}, nil
	}
	if _, err := root(text); err != nil {
		return nil, err
	}
	return plain(text).(map[string]any), nil
}

// check compares two texts: with is without and the server, and nothing else has changed.
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

// starts reports whether a decoded server starts the program with that first argument.
func starts(server any, program, first string) bool {
	s, _ := server.(map[string]any)
	var argv []string
	switch command := s["command"].(type) {
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
