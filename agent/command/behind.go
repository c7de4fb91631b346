package command

import (
	"cmp"
	"slices"
	"strings"
)

// opener notes the commands that c runs. It reports whether c does nothing but run them.
type opener func(r *reader, c Command, in input) bool

// command notes a command and the commands that it runs.
func (r *reader) command(words []Word, in input) {
	c := Command{words, r.apart}
	if len(r.out.Commands)+len(r.out.Outer) >= maxCommands {
		if !r.full {
			r.out.find(Unparsed, "too many commands")
		}
		r.full = true
		return
	}
	if !words[0].Fixed || words[0].Text == "" {
		r.out.findIn(Dynamic, c)
		r.out.Commands = append(r.out.Commands, c)
		return
	}
	if first := words[0].Text; r.text != "" && len(first) > 1 && (first[0] == '=' || first[0] == '$') { // zsh expands it
		r.out.findIn(Dynamic, c)
	}
	if first := words[0].Text; (r.text != "" || r.depth > 0) && len(first) > 1 && first[0] == '-' { // bash runs a program of that name; behind "time", other shells take it for an option
		r.out.findIn(Option, c)
	}
	if strings.ContainsAny(words[0].Text, `/\\`) {
		r.script(words[0])
	}
	outer, apart := false, r.apart
	r.apart = apart || !staysWith(c.Name())
	if open := openerOf(c); open != nil {
		read := func() { r.deeper(c.String(), func() { outer = open(r, c, in) }) }
		if IsShell(c.Name()) {
			read()
		} else { // its own options may change the directory before the command runs
			r.later(read, func() int { return len(r.out.Moves) })
		}
	} else if i := interpreterOf(c.Name()); i != nil {
		i.read(r, c, in)
	} else {
		r.deeper(c.String(), func() { r.unlisted(c, in) })
	}
	r.apart = apart
	if outer {
		r.out.Outer = append(r.out.Outer, c)
	} else {
		r.out.Commands = append(r.out.Commands, c)
	}
}

// staysWith reports whether the commands that a program runs have the words that are
// written, and run where and as whom the program itself does.
func staysWith(name string) bool {
	return IsShell(name) || slices.Contains([]string{"timeout", "gtimeout", "time", "nice", "command"}, name)
}

// openerOf returns the function that finds the commands behind c, or nil.
func openerOf(c Command) opener {
	name := c.Name()
	if open := openers[name]; open != nil {
		return open
	}
	if p := programs()[name]; p != nil {
		return p.open
	}
	if slices.Contains(shells, shellNamed(name)) {
		return openShell
	}
	return nil
}

// openers has the commands whose arguments a row of the table cannot describe. It is
// filled in init, as they need each other.
var openers map[string]opener

func init() {
	openers = map[string]opener{
		"eval": openEval, "trap": openTrap, "alias": openAlias, "source": openSource, ".": openSource,
		"cd": openMove, "pushd": openMove, "chdir": openMove,
		"find": openFind, "gfind": openFind, "fd": openFd, "fdfind": openFd,
		"ssh": openSSH, "slogin": openSSH, "autossh": openSSH, "watch": openWatch, "xargs": openXargs, "gxargs": openXargs,
		"git": openGit, "awk": openAwk, "gawk": openAwk, "mawk": openAwk, "nawk": openAwk, "goawk": openAwk, "original-awk": openAwk, "sed": openSed, "gsed": openSed,
		"command": openCommand, "env": openEnv, "genv": openEnv,
		"tar": openTar, "gtar": openTar, "bsdtar": openTar, "socat": openRelay, "websocat": openRelay,
		"parallel": openParallel, "env_parallel": openParallel, "parset": openParallel,
	}
	for _, name := range shells {
		openers[name] = openShell
	}
}

// setBy notes the variables that are set by NAME=value among the options.
func (r *reader) setBy(met []option) {
	for _, m := range met {
		if m.name == "=" {
			name, value, _ := strings.Cut(m.value.Text, "=")
			r.out.Sets = append(r.out.Sets, Setting{name, Word{value, true}})
		}
	}
}

// lineIn reads a word that a shell will run as a line.
func (r *reader) lineIn(w Word, in input) {
	if !w.Fixed {
		r.out.find(Dynamic, w.Text)
		return
	}
	r.line(w.Text, in)
}

// joined reads words, joined with blanks, as a line. It reports whether there are any.
func (r *reader) joined(words []Word, in input) bool {
	if len(words) == 0 {
		return false
	}
	line := Word{Fixed: true}
	for i, w := range words {
		if i > 0 {
			line.Text += " "
		}
		line.Text += w.Text
		line.Fixed = line.Fixed && w.Fixed
	}
	r.lineIn(line, in)
	return true
}

func openWatch(r *reader, c Command, in input) bool {
	met, rest := options{short: "nq", long: []string{"interval", "equexit"}}.parse(c.Words[1:])
	_, direct := valueOf(met, "x", "exec")
	if direct && len(rest) > 0 {
		r.command(rest, in)
		return true
	}
	return r.joined(rest, in)
}

func openEval(r *reader, c Command, in input) bool {
	r.out.findIn(Eval, c)
	return r.joined(c.Words[1:], in)
}

func openTrap(r *reader, c Command, in input) bool {
	_, rest := options{}.parse(c.Words[1:])
	if len(rest) > 1 && rest[0].Text != "-" {
		r.lineLater(rest[0], in)
	}
	return false
}

func openAlias(r *reader, c Command, in input) bool {
	for _, w := range c.Words[1:] {
		if _, line, ok := strings.Cut(w.Text, "="); ok {
			r.lineLater(Word{line, w.Fixed}, in)
		}
	}
	return false
}

func openSource(r *reader, c Command, _ input) bool {
	if _, rest := (options{}).parse(c.Words[1:]); len(rest) > 0 {
		r.script(rest[0])
	}
	r.out.findIn(Script, c)
	return false
}

func openMove(r *reader, c Command, _ input) bool {
	_, rest := options{}.parse(c.Words[1:])
	to := Word{"~", true}
	if len(rest) > 0 {
		to = rest[0]
	}
	r.out.Moves = append(r.out.Moves, to)
	return false
}

// openCommand: "command -v NAME" only looks NAME up.
func openCommand(r *reader, c Command, in input) bool {
	met, rest := options{}.parse(c.Words[1:])
	if _, looks := valueOf(met, "v", "V"); looks || len(rest) == 0 {
		return false
	}
	r.command(rest, in)
	return true
}

func openEnv(r *reader, c Command, in input) bool {
	o := options{short: "aCLPSuU", long: []string{"unset", "chdir", "split-string", "argv0"}, dash: true, assigns: true}
	met, rest := o.parse(c.Words[1:])
	r.setBy(met)
	if to, ok := valueOf(met, "C", "chdir"); ok {
		r.out.Moves = append(r.out.Moves, to)
	}
	if line, ok := valueOf(met, "S", "split-string"); ok {
		r.out.findIn(InlineCode, c)
		return r.joined(append([]Word{{"env", true}, line}, rest...), in)
	}
	if len(rest) == 0 {
		return false
	}
	r.command(rest, in)
	return true
}

func openXargs(r *reader, c Command, _ input) bool {
	o := options{short: "adEIJLnPRsS", maybe: "eil", flags: []string{"eof", "max-lines", "replace"},
		long: []string{"arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"}}
	met, rest := o.parse(c.Words[1:])
	if len(rest) == 0 {
		return false // echo
	}
	place, replaces := valueOf(met, "I", "replace", "i", "J")
	place.Text = cmp.Or(place.Text, "{}")
	// The input becomes words of the command. For a shell or an interpreter it is code.
	words := make([]Word, len(rest), len(rest)+1)
	for i, w := range rest {
		words[i] = Word{w.Text, w.Fixed && !(replaces && strings.Contains(w.Text, place.Text))}
	}
	if !replaces {
		words = append(words, Word{Text: "…"})
	}
	r.command(words, input{})
	return true
}
