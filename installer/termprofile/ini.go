package termprofile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"tether/internal/lazyregexp"
)

// ini is a text of lines key=value below lines [section].
type ini []string // with their line ends

func readINI(text []byte) ini {
	var lines ini
	for line := range bytes.Lines(text) {
		lines = append(lines, string(line))
	}
	return lines
}

func (t ini) text() []byte { return []byte(strings.Join(t, "")) }

// section returns the indexes of the first line after the header and of the line after
// the last one that is not blank; both are -1 if there is no such section.
func (t ini) section(name string) (from, to int) {
	from = slices.IndexFunc(t, func(line string) bool { return strings.TrimSpace(line) == "["+name+"]" }) + 1
	if from == 0 {
		return -1, -1
	}
	to = from
	for i, line := range t[from:] {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			break
		}
		if line != "" {
			to = from + i + 1
		}
	}
	return from, to
}

// find returns the index of a key's line, -1 if there is none, and the value.
func (t ini) find(section, key string) (at int, value string) {
	from, to := t.section(section)
	for i := max(from, 0); i < to; i++ {
		if k, v, ok := strings.Cut(t[i], "="); ok && strings.TrimSpace(k) == key {
			return i, strings.TrimSpace(v)
		}
	}
	return -1, ""
}

// set returns the text with the value, in a section at the end if there is none.
func (t ini) set(section, key, value string) ini {
	line := key + "=" + value + "\n"
	if at, _ := t.find(section, key); at >= 0 {
		t = slices.Clone(t)
		t[at] = line
		return t
	}
	_, to := t.section(section)
	if to >= 0 {
		if to > 0 && !strings.HasSuffix(t[to-1], "\n") {
			t = slices.Clone(t)
			t[to-1] += "\n"
		}
		return slices.Insert(slices.Clone(t), to, line)
	}
	t = slices.Clone(t)
	if n := len(t); n > 0 {
		if !strings.HasSuffix(t[n-1], "\n") {
			t[n-1] += "\n"
		}
		t = append(t, "\n")
	}
	return append(t, "["+section+"]\n", line)
}

// unset returns the text without the key, and without the section if nothing else is in
// it.
func (t ini) unset(section, key string) ini {
	at, _ := t.find(section, key)
	if at < 0 {
		return t
	}
	t = slices.Delete(slices.Clone(t), at, at+1)
	if from, to := t.section(section); from == to {
		return t.drop(section)
	}
	return t
}

// drop returns the text without the section, and without the blank lines before it.
func (t ini) drop(section string) ini {
	from, to := t.section(section)
	if from < 0 {
		return t
	}
	for from--; from > 0 && strings.TrimSpace(t[from-1]) == ""; from-- {
	}
	if from == 0 {
		for to < len(t) && strings.TrimSpace(t[to]) == "" {
			to++
		}
	}
	return slices.Delete(slices.Clone(t), from, to)
}

// setting is a key of an INI file.
type setting struct{ section, key, value string }

func (s setting) add(text []byte) ([]byte, error) {
	t := readINI(text)
	switch at, value := t.find(s.section, s.key); {
	case at >= 0 && value == s.value:
		return text, nil
	case at >= 0 && value != "":
		return nil, errTaken
	}
	return t.set(s.section, s.key, s.value).text(), nil
}

func (s setting) remove(text []byte) ([]byte, error) {
	t := readINI(text)
	if _, value := t.find(s.section, s.key); value != s.value {
		return text, nil
	}
	return t.unset(s.section, s.key).text(), nil
}

// gnome is a profile of GNOME Terminal in what dconf dump prints of
// /org/gnome/terminal/legacy/profiles:/.
type gnome struct{ id, command string }

// gnomeDefault is the list of profiles while none is set, by the program's schema
// org.gnome.Terminal.ProfilesList.
const gnomeDefault = "'b1dcc9dd-5262-4d8d-a863-c897e6d979b9'"

var gnomeIDs = lazyregexp.New(`^\[('[0-9a-f-]+'(, '[0-9a-f-]+')*)?\]$`)

// ids returns the profiles in the list.
func (g gnome) ids(t ini) ([]string, error) {
	at, value := t.find("/", "list")
	if at < 0 {
		return []string{gnomeDefault}, nil
	}
	if !gnomeIDs().MatchString(value) {
		return nil, fmt.Errorf("the list of profiles is not understood: %.80q", value)
	}
	if value == "[]" {
		return nil, nil
	}
	return strings.Split(strings.Trim(value, "[]"), ", "), nil
}

func (g gnome) add(text []byte) ([]byte, error) {
	t := readINI(text)
	ids, err := g.ids(t)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(ids, "'"+g.id+"'") {
		t = t.set("/", "list", "["+strings.Join(append(ids, "'"+g.id+"'"), ", ")+"]")
	}
	for _, s := range []setting{{key: "custom-command", value: variant(g.command)}, {key: "use-custom-command", value: "true"}, {key: "visible-name", value: "'tether'"}} {
		t = t.set(":"+g.id, s.key, s.value)
	}
	return t.text(), nil
}

func (g gnome) remove(text []byte) ([]byte, error) {
	t := readINI(text).drop(":" + g.id)
	ids, err := g.ids(t)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "'"+g.id+"'" })
	switch {
	case len(left) == len(ids):
	case len(left) == 1 && left[0] == gnomeDefault:
		t = t.unset("/", "list")
	default:
		t = t.set("/", "list", "["+strings.Join(left, ", ")+"]")
	}
	return t.text(), nil
}

// variant returns a text as GLib writes strings.
func variant(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
