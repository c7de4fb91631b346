package command

import (
	"slices"
	"strings"
)

// effect works out the effect of one command of the table.
type effect struct {
	*reader
	of       Command
	in       input
	found    bool // the command that is run was found
	lined    bool // a line was given by an option
	wantsTTY bool
	unknown  bool // Option was found
}

func (d *effect) finding(k Kind) {
	if k == Option {
		if d.unknown {
			return
		}
		d.unknown = true
	}
	d.out.findIn(k, d.of)
}

// interactive notes that the program runs typed text, or its input if that does not come
// from a terminal.
func (d *effect) interactive() {
	switch {
	case d.in.text != nil && d.in.text.Fixed && !sqlRuns(*d.in.text) && isSQL(d.of):
	case d.in.fed():
		d.finding(InlineCode)
	default:
		d.finding(Interactive)
	}
}

// option notes the effect of an option.
func (d *effect) option(act string, m option) {
	switch act {
	case "line":
		d.lineIn(m.value, input{})
		d.found, d.lined = true, true
	case "mount":
		d.mount(m.value)
	case "hook":
		d.runByOption(d.of, m.value)
		d.found = true
	case "rest":
		d.after(m.name)
	case "code":
		d.finding(InlineCode)
		d.found = true
	case "script":
		d.script(m.value)
		d.finding(Script)
		d.found = true
	case "write":
		d.writes(m.value)
	case "pipe":
		if line := strings.TrimLeft(m.value.Text, `"'`); strings.HasPrefix(line, "|") || strings.HasPrefix(line, "!") || strings.HasPrefix(line, "%pipe%") {
			d.runByOption(d.of, Word{strings.TrimPrefix(strings.TrimLeft(line, "|!"), "%pipe%"), m.value.Fixed})
		} else {
			d.writes(m.value)
		}
	case "move":
		d.out.Moves = append(d.out.Moves, m.value)
	case "destroy":
		d.finding(Destroys)
	case "shell":
		d.finding(Interactive)
	case "tty":
		d.wantsTTY = true
	case "quiet":
		d.found = true
	case "ask":
		d.finding(Option)
	case "ask-set":
		if !m.value.Fixed || namesProgram(m.value.Text) {
			d.finding(Option)
		}
	case "sshopt":
		d.sshOption(m.value)
	default:
		d.value(act, m.value)
	}
}

// value notes the effect of an option that depends on its value.
func (d *effect) value(act string, w Word) {
	runs := false
	switch act {
	case "sql":
		runs = sqlRuns(w)
	case "gitconfig":
		runs = runsCode(w)
	case "pymodule":
		runs = runsModule(w)
	case "rustc":
		runs = !w.Fixed || strings.HasPrefix(w.Text, "link") && !usualLinker(w.Text)
	case "words":
		runs = !w.Fixed || strings.ContainsAny(w.Text, "$`") || strings.Contains(w.Text, "syscmd")
	default:
		return
	}
	d.found = true
	if runs {
		d.finding(InlineCode)
	}
}

// usualLinker reports whether a setting of rustc's for linking names no other program
// than a usual linker.
func usualLinker(setting string) bool {
	name, value, _ := strings.Cut(setting, "=")
	value = strings.TrimPrefix(value, "-fuse-ld=")
	switch name {
	case "linker", "link-arg", "link-args":
		return slices.Contains([]string{"cc", "gcc", "clang", "ld", "lld", "ld.lld", "rust-lld", "mold", "gold", "bfd", "-s", "-static"}, value)
	}
	return true // link-dead-code, link-self-contained
}

// after reads the words after an option as a command.
func (d *effect) after(name string) {
	for i, w := range d.of.Words {
		if (w.Text == "-"+name || w.Text == "--"+name) && i+1 < len(d.of.Words) {
			d.command(d.of.Words[i+1:], d.in)
			d.found = true
			return
		}
	}
}

// operands reads the words after the options. It reports whether they are a command, or a
// line.
func (d *effect) operands(p *program, met []option, rest []Word) bool {
	switch p.operands {
	case "cmd":
		return d.cmd(p, rest)
	case "cmd-after":
		i := slices.IndexFunc(d.of.Words, func(w Word) bool { return w.Fixed && w.Text == "--" })
		if i < 0 || i+1 == len(d.of.Words) {
			return d.found
		}
		d.command(d.of.Words[i+1:], d.in)
		d.found = true
		return true
	case "line":
		return d.joined(rest, d.in) || d.found
	case "lines":
		for _, w := range rest {
			d.lineIn(w, d.in)
		}
		return len(rest) > 0 || d.found
	case "verb":
		return d.verb(p, met, rest)
	default:
		d.other(p.operands, rest)
	}
	return false
}

// cmd reads the operands as a command. Several programs also take -c LINE there.
func (d *effect) cmd(p *program, rest []Word) bool {
	if p.acts["c"] == "line" && d.found {
		return true
	}
	if p.skip > 0 && p.both { // "kubectl exec POD -c NAME -- CMD": options may follow the operand
		if i := slices.IndexFunc(d.of.Words, func(w Word) bool { return w.Fixed && w.Text == "--" }); i >= 0 {
			rest = d.of.Words[i+1:]
		}
	}
	if len(rest) > 1 && p.acts["c"] == "line" && (rest[0].Text == "-c" || rest[0].Text == "--command") {
		d.lineIn(rest[1], d.in)
		return true
	}
	if d.of.Name() == "setarch" && len(rest) > 0 && rest[0].Fixed && strings.ContainsAny(rest[0].Text, "0123456789") && programs()[rest[0].Text] != nil {
		d.command(rest, d.in) // "x86_64 CMD" is a command of its own
		return true
	}
	if len(rest) == 0 {
		return d.found
	}
	if name := d.of.Name(); (name == "busybox" || name == "toybox") && IsShell(rest[0].Text) {
		d.finding(InlineCode)
	}
	d.command(rest, d.in)
	return true
}

// verb goes on with the row of the verb.
func (d *effect) verb(p *program, met []option, rest []Word) bool {
	interpretedAs(d.reader, d.of, d.in)
	if len(rest) == 0 {
		return d.found
	}
	if len(met) > 0 { // the rules look for the verb right after the name
		d.command(append(slices.Clone(d.of.Words[:p.names]), rest...), d.in)
		return false
	}
	if sub := verbOf(d.of, p.names+1); sub != nil {
		outer := sub.open(d.reader, d.of, d.in)
		d.found = true
		return outer
	}
	return false
}

// verbOf returns the row for the first words of a command, which are its name and verbs,
// or nil.
func verbOf(c Command, words int) *program {
	if len(c.Words) < words {
		return nil
	}
	verbs := ""
	for _, w := range c.Words[1:words] {
		if !w.Fixed {
			return nil
		}
		verbs += " " + w.Text
	}
	if p := programs()[c.Name()+verbs]; p != nil {
		return p
	}
	return programs()[canonical()[c.Name()]+verbs]
}

func (d *effect) other(kind string, rest []Word) {
	switch kind {
	case "script":
		if len(rest) > 0 {
			d.script(rest[0])
			d.finding(Script)
		}
	case "code":
		if len(rest) > 0 {
			d.finding(InlineCode)
			d.found = true
		}
	case "sqlops":
		for _, w := range rest[min(1, len(rest)):] {
			d.option("sql", option{value: w})
		}
	case "writes":
		for _, w := range rest {
			d.writes(w)
		}
	case "first":
		if len(rest) > 0 {
			d.writes(rest[0])
		}
	case "output":
		if len(rest) > 0 {
			d.writes(rest[len(rest)-1])
		}
	case "last":
		if len(rest) > 1 {
			d.writes(rest[len(rest)-1])
		}
	case "push":
		for _, w := range rest[min(1, len(rest)):] {
			if strings.HasPrefix(w.Text, ":") {
				d.finding(Destroys)
			}
		}
	case "destroys":
		d.finding(Destroys)
	case "ask":
		d.finding(Option)
	case "gitconfig":
		d.gitConfig(rest)
	case "ask-set":
		if slices.ContainsFunc(rest, func(w Word) bool { return !w.Fixed || namesProgram(w.Text) }) {
			d.finding(Option)
		}
	case "make":
		for _, w := range rest {
			if name, _, ok := strings.Cut(w.Text, "="); ok && slices.Contains([]string{"SHELL", ".SHELLFLAGS", "MAKEFLAGS", "GNUMAKEFLAGS"}, strings.TrimRight(name, ":?+!")) {
				d.finding(InlineCode)
			}
		}
	}
}

// mount notes that a container may write what it sees of this machine: SOURCE:TARGET,
// or type=bind,src=SOURCE,….
func (d *effect) mount(w Word) {
	source, options, found := strings.Cut(w.Text, ":")
	if !found {
		for field := range strings.SplitSeq(w.Text, ",") {
			name, value, _ := strings.Cut(field, "=")
			if name == "src" || name == "source" {
				source = value
			}
			options += "," + field
		}
	}
	if strings.ContainsAny(source, "/~") && !strings.Contains(options, ":ro") && !strings.Contains(options, "readonly") {
		d.writes(Word{strings.Trim(source, `"'`), w.Fixed})
	}
}

// writes notes a written file. A name that is not known is noted only if it begins
// outside, such as $HOME/x: an unknown name needs a question in a redirection, but not in
// cp.
func (d *effect) writes(w Word) {
	bare := strings.Trim(w.Text, `"'`)
	switch {
	case w.Text == "" || w.Text == "-" || w.Fixed && isRemote(w.Text):
	case w.Fixed, strings.HasPrefix(bare, "$HOME"), strings.HasPrefix(bare, "${HOME"), strings.HasPrefix(bare, "~"), strings.HasPrefix(bare, "/"):
		d.out.Files = append(d.out.Files, File{w, d.of, len(d.out.Moves)})
	}
}

// isRemote reports whether s is HOST:PATH.
func isRemote(s string) bool {
	colon := strings.IndexByte(s, ':')
	return colon > 1 && !strings.Contains(s[:colon], "/")
}

// gitConfig finds settings of git's that name a program.
func (d *effect) gitConfig(rest []Word) {
	if len(rest) > 0 && rest[0].Text == "set" {
		rest = rest[1:]
	}
	if len(rest) < 2 || slices.Contains([]string{"get", "list", "unset", "rename-section", "remove-section"}, rest[0].Text) {
		return
	}
	if runsCode(Word{rest[0].Text + "=" + rest[1].Text, rest[0].Fixed && rest[1].Fixed}) {
		d.finding(InlineCode)
	}
}

// namesProgram reports whether a setting of a package manager names a program.
func namesProgram(s string) bool {
	return slices.ContainsFunc([]string{"shell", "node-options", "editor", "viewer", "init-module", "onload-script", "script", "exec.executable"}, func(key string) bool { return strings.Contains(strings.ToLower(s), key) })
}

// isSQL reports whether the program reads SQL.
func isSQL(c Command) bool {
	return slices.Contains([]string{"sqlite3", "sqlite", "duckdb", "psql", "mysql", "mariadb"}, c.Name())
}

// sqlRuns reports whether a text for a database's client may run a command or write a
// file, by the clients' own commands and by functions of the databases.
func sqlRuns(w Word) bool {
	if !w.Fixed {
		return true
	}
	text := strings.ToLower(w.Text)
	for line := range strings.Lines(text) {
		for statement := range strings.SplitSeq(line, ";") {
			statement = strings.TrimSpace(statement)
			first, _, _ := strings.Cut(statement, " ")
			if len(first) > 1 && first[0] == '.' && !slices.Contains(harmlessDots, first[1:]) {
				return true
			}
			if slices.Contains([]string{"system", "source", "pager", "tee"}, first) {
				return true
			}
		}
	}
	for _, part := range []string{`\!`, `\o`, `\g`, `\i`, `\w`, `\e`, `\copy`, `\s `, " program ", "load_extension", "writefile", "edit(", "outfile", "dumpfile",
		"xp_cmdshell", "lo_export", "plpython", "plperl", "shellfs"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// harmlessDots are commands of sqlite3 that only show something, or change its
// presentation.
var harmlessDots = []string{"tables", "schema", "indexes", "indices", "mode", "headers", "header", "width", "databases", "dump", "show", "fullschema", "timer", "stats",
	"quit", "exit", "help", "nullvalue", "separator", "echo", "changes", "bail", "explain", "eqp", "columns", "dbinfo", "timeout", "print"}
