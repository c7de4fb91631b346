package command

import (
	"slices"
	"strings"
)

// shells read the language that Line reads, or nearly so.
var shells = []string{"sh", "bash", "rbash", "dash", "ash", "zsh", "rzsh", "ksh", "ksh93", "rksh", "mksh", "pdksh", "lksh", "oksh", "loksh", "yash", "posh", "hush", "osh", "brush", "bosh",
	"pbosh", "sash"}

// usualShells are those that everybody knows as shells. Code behind other names hides.
var usualShells = []string{"sh", "bash", "dash", "zsh", "ksh"}

// IsShell reports whether a program of that name, or path, reads the language of Line.
func IsShell(name string) bool {
	return slices.Contains(shells, baseName(name))
}

// shellNamed returns the shell of which name is a variant, such as bash-5.2, zsh5 or
// sh.distrib, and "" for other programs.
func shellNamed(name string) string {
	for _, ending := range []string{".real", ".distrib", ".static", "-static", ".orig"} {
		name = strings.TrimSuffix(name, ending)
	}
	for _, n := range []string{name, strings.TrimRight(name, "0123456789.-")} {
		if slices.Contains(shells, n) || slices.Contains(otherShells, n) {
			return n
		}
	}
	return ""
}

// endsInShell reports whether the name of a program that is in no table is that of a
// shell, as far as a name can say.
func endsInShell(name string) bool {
	return strings.HasSuffix(strings.TrimRight(name, "0123456789.-"), "sh")
}

// openShell reads the code that a shell runs: a line, its input, or a file, whose
// contents are unknown.
func openShell(r *reader, c Command, in input) bool {
	if path := c.Words[0].Text; !slices.Contains(usualShells, c.Name()) || isPath(path) && !Installed(path) {
		r.out.findIn(InlineCode, c) // its name does not say that it is a shell
	}
	met, rest := options{short: "oO", long: []string{"rcfile", "init-file"}, plus: true}.parse(c.Words[1:])
	for _, m := range met {
		if m.name == "rcfile" || m.name == "init-file" {
			r.script(m.value)
			r.out.findIn(Script, c)
		}
	}
	_, isLine := valueOf(met, "c")
	_, isInput := valueOf(met, "s")
	switch {
	case isLine && len(rest) > 0:
		r.lineIn(rest[0], in)
		return true
	case len(rest) > 0 && !isInput:
		r.scriptOf(c, rest[0])
		return false
	case in.text != nil:
		r.lineIn(*in.text, input{file: true})
		return true
	case in.pipe:
		r.out.findIn(PipeToShell, c)
	case in.file:
		r.out.findIn(Script, c)
	default:
		r.out.findIn(Interactive, c)
	}
	return false
}

// scriptOf notes that the file runs. The output of a substitution is not a file.
func (r *reader) scriptOf(c Command, file Word) {
	if !file.Fixed && strings.HasPrefix(file.Text, "<(") || strings.HasPrefix(file.Text, "/dev/") || strings.HasPrefix(file.Text, "/proc/") {
		r.out.findIn(PipeToShell, c)
		return
	}
	r.script(file)
	r.out.findIn(Script, c)
}

// script notes a file that is run.
func (r *reader) script(file Word) {
	if file.Fixed && file.Text != "" {
		r.out.Scripts = append(r.out.Scripts, file)
	}
}
