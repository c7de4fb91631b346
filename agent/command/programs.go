package command

import (
	"slices"
	"strings"
)

// openFind looks for commands that find runs; the rules handle its deletions.
func openFind(r *reader, c Command, in input) bool {
	for i, w := range c.Words {
		switch w.Text {
		case "-exec", "-execdir", "-ok", "-okdir":
			rest := c.Words[i+1:]
			for n, end := range rest {
				if end.Text == ";" || end.Text == "+" {
					rest = rest[:n]
					break
				}
			}
			if len(rest) > 0 {
				r.command(rest, in)
			}
		}
	}
	return false
}

// openFd looks for the command that fd runs: the words after -x, -X, --exec or
// --exec-batch.
func openFd(r *reader, c Command, in input) bool {
	for i, w := range c.Words[1:] {
		first, ok := fdExec(w.Text)
		if !ok {
			continue
		}
		rest := c.Words[i+2:]
		if first != "" {
			rest = append([]Word{{first, w.Fixed}}, rest...)
		}
		if len(rest) > 0 {
			r.command(rest, in)
		}
		return false
	}
	return false
}

// fdExec reports whether a word of fd is, or ends with, an option that runs a command;
// first is the command's first word if it is attached.
func fdExec(s string) (first string, ok bool) {
	if long, ok := strings.CutPrefix(s, "--"); ok {
		name, value, _ := strings.Cut(long, "=")
		return value, name == "exec" || name == "exec-batch"
	}
	letters, ok := strings.CutPrefix(s, "-")
	// The other letters take a value, which is the rest of the word.
	if i := strings.IndexAny(letters, "xXCESTcdejot"); ok && i >= 0 && letters[i]|0x20 == 'x' {
		return strings.TrimPrefix(letters[i+1:], "="), true
	}
	return "", false
}

// openSSH reads the line for the shell on the other side. Options may follow the host.
func openSSH(r *reader, c Command, in input) bool {
	o := options{short: "BbcDEeFIiJLlmOoPpQRSWw"}
	met, rest := o.parse(c.Words[1:])
	if len(rest) > 0 {
		var more []option
		more, rest = o.parse(rest[1:])
		met = append(met, more...)
	}
	d := effect{reader: r, of: c}
	quiet := len(rest) > 0
	for _, m := range met {
		switch m.name {
		case "o":
			d.sshOption(m.value)
		case "F":
			d.finding(Script)
		case "I":
			d.finding(InlineCode)
		case "E":
			d.writes(m.value)
		case "N", "V", "G", "Q", "O", "W":
			quiet = true
		case "T": // without a terminal, the shell on the other side still runs its input
			quiet = quiet || !in.fed()
		}
	}
	if !quiet {
		d.finding(Interactive)
	}
	r.joined(rest, input{})
	return false
}

// sshOption reads a line of ssh's configuration.
func (d *effect) sshOption(w Word) {
	name, line, _ := strings.Cut(strings.TrimLeft(w.Text, " "), "=")
	if n, rest, ok := strings.Cut(name, " "); ok { // "ProxyCommand x" is the same
		name, line = n, strings.TrimSpace(rest+line)
	}
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "proxycommand", "localcommand", "knownhostscommand", "remotecommand":
		if strings.ToLower(line) != "none" {
			d.runByOption(d.of, Word{line, w.Fixed})
		}
	case "include", "match":
		d.finding(Script)
	case "pkcs11provider", "securitykeyprovider", "smartcarddevice", "xauthlocation":
		d.finding(InlineCode)
	default:
		if !w.Fixed {
			d.finding(Option)
		}
	}
}

// openGit takes git's own options away, so that rules find the verb.
func openGit(r *reader, c Command, in input) bool {
	o := options{short: "Cc", long: []string{"git-dir", "work-tree", "namespace", "super-prefix", "config-env", "exec-path", "attr-source", "shallow-file"}}
	met, rest := o.parse(c.Words[1:])
	for _, m := range met {
		if m.name == "c" && runsCode(m.value) || m.name == "config-env" || m.name == "exec-path" && m.value != (Word{}) {
			r.out.findIn(InlineCode, c)
			break
		}
	}
	if slices.ContainsFunc(rest, func(w Word) bool { return strings.HasPrefix(w.Text, "ext::") || strings.HasPrefix(w.Text, "fd::") }) {
		r.out.findIn(InlineCode, c)
	}
	switch sub := verbOf(c, 2); {
	case len(rest) == 0:
		return false
	case len(met) > 0:
		r.command(append([]Word{c.Words[0]}, rest...), in)
		return true
	case sub != nil:
		return sub.open(r, c, in)
	}
	return false
}

// harmlessSettings keep git from running other programs. Agent programs pass them.
var harmlessSettings = []string{"core.fsmonitor=false", "core.hookspath=/dev/null", "core.pager=cat"}

// runsCode reports whether a setting of git's may name a program.
func runsCode(setting Word) bool {
	name, value, _ := strings.Cut(setting.Text, "=")
	name = strings.ToLower(name)
	switch {
	case !setting.Fixed, strings.HasPrefix(value, "!"):
		return true
	case slices.Contains(harmlessSettings, name+"="+value):
		return false
	}
	for _, part := range []string{"pager", "editor", "command", "cmd", "program", "helper", "hookspath", "textconv", "driver", "filter.",
		"alias.", "fsmonitor", "proxy", "askpass", "external", "ext.", "include"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// openAwk finds programs of awk's that run commands or write files.
func openAwk(r *reader, c Command, _ input) bool {
	o := options{short: "EFWZefilv", maybe: "DLdop", long: []string{"file", "exec", "include", "load", "field-separator", "assign", "source", "locale"}}
	met, rest := o.parse(c.Words[1:])
	programs := slices.Clone(rest[:min(1, len(rest))])
	for _, m := range met {
		if (m.name == "l" || m.name == "load") && isFile(m.value) {
			r.out.findIn(InlineCode, c)
		}
		if m.name == "i" && m.value.Text == "inplace" {
			for _, w := range rest[min(1, len(rest)):] {
				(&effect{reader: r, of: c}).writes(w)
			}
		}
		if m.name == "e" || m.name == "source" || m.name == "W" { // -W source=PROGRAM
			programs = append(programs, m.value)
		}
	}
	if slices.ContainsFunc(programs, func(w Word) bool {
		return !w.Fixed || strings.Contains(w.Text, "system") || strings.ContainsAny(w.Text, "|@") || awkWrites(w.Text)
	}) {
		r.out.findIn(InlineCode, c)
	}
	return false
}

// awkWrites reports whether the program may write a file: ">" does so only behind print,
// and compares elsewhere.
func awkWrites(program string) bool {
	at := strings.Index(program, "print")
	if strings.Contains(program, "\\\n") { // a word may go on in the next line
		at = 0
	}
	return at >= 0 && strings.Contains(program[at:], ">")
}

// interpretedAs is for runners that are interpreters too.
func interpretedAs(r *reader, c Command, in input) bool {
	if i := interpreterOf(c.Name()); i != nil {
		i.read(r, c, in)
	}
	return false
}
