package command

import (
	"cmp"
	"slices"
	"strings"
)

// options are a command's options before its operands, as far as they are needed to find
// the operands.
type options struct {
	short   string   // letters of options with a value
	maybe   string   // letters of options to which a value may be attached
	flags   []string // names of options without a value, as far as they are known
	long    []string // names of options with a value that may be the next word
	dash    bool     // a lone "-" is an option
	plus    bool     // options may also begin with "+"
	single  bool     // long names have one dash
	assigns bool     // NAME=value may come after the options
	skip    int      // operands before the one that is looked for
}

// option is one that was met.
type option struct {
	name  string // one letter, or a long name; with a "+" before it if it began so
	value Word   // zero if it has none
}

// parse returns the operands and the options before them. A word that is not fixed ends
// the options, because its value is unknown.
func (o options) parse(args []Word) (met []option, operands []Word) {
	for len(args) > 0 {
		w := args[0]
		if !w.Fixed || !o.isOption(w.Text) {
			break
		}
		args = args[1:]
		if w.Text == "--" {
			break
		}
		var found []option
		if strings.HasPrefix(w.Text, "--") || o.single {
			found, args = o.parseLong(w.Text, args)
		} else {
			found, args = o.parseShort(w.Text[1:], args)
		}
		if w.Text[0] == '+' {
			for i := range found {
				found[i].name = "+" + found[i].name
			}
		}
		met = append(met, found...)
	}
	for o.assigns && len(args) > 0 && args[0].Fixed && strings.IndexByte(args[0].Text, '=') > 0 {
		met = append(met, option{name: "=", value: args[0]})
		args = args[1:]
	}
	return met, args[min(o.skip, len(args)):]
}

func (o options) isOption(s string) bool {
	if s == "-" {
		return o.dash
	}
	return strings.HasPrefix(s, "-") || o.plus && len(s) > 1 && s[0] == '+'
}

func (o options) parseLong(s string, args []Word) ([]option, []Word) {
	name, value, has := strings.Cut(strings.TrimLeft(s, "-"), "=")
	name = o.whole(name)
	switch {
	case has:
		return []option{{name, Word{value, true}}}, args
	case len(args) > 0 && o.takesLong(name):
		return []option{{name, args[0]}}, args[1:]
	}
	return []option{{name: name}}, args
}

// whole is the long name that begins with name, if there is exactly one: programs accept
// the beginning, so a search for the whole name must find it.
func (o options) whole(name string) string {
	found := ""
	for _, l := range slices.Concat(o.long, o.flags) {
		switch {
		case l == name:
			return name
		case name == "" || !strings.HasPrefix(l, name):
		case found != "":
			return name
		default:
			found = l
		}
	}
	return cmp.Or(found, name)
}

// takesLong reports whether a long option takes the next word as its value. name may be
// the beginning of one, as programs accept it.
func (o options) takesLong(name string) bool {
	return name != "" && !slices.Contains(o.flags, name) && slices.ContainsFunc(o.long, func(l string) bool { return strings.HasPrefix(l, name) })
}

func (o options) parseShort(letters string, args []Word) (met []option, rest []Word) {
	for i, l := range letters {
		if strings.ContainsRune(o.maybe, l) {
			return append(met, option{string(l), Word{letters[i+len(string(l)):], true}}), args
		}
		if !strings.ContainsRune(o.short, l) {
			met = append(met, option{name: string(l)})
			continue
		}
		value := Word{letters[i+len(string(l)):], true}
		if value.Text == "" && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		return append(met, option{string(l), value}), args
	}
	return met, args
}

// valueOf returns the value of the first option with one of the names.
func valueOf(met []option, names ...string) (Word, bool) {
	for _, m := range met {
		if slices.Contains(names, m.name) {
			return m.value, true
		}
	}
	return Word{}, false
}
