package command

import "strings"

// shells read the language that Line reads, or nearly so.
var shells = []string{"sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "yash"}

// IsShell reports whether a program of that name, or path, reads the language of Line.
func IsShell(name string) bool {
	name = baseName(name)
	for _, s := range shells {
		if s == name {
			return true
		}
	}
	return false
}

// openShell reads the code that a shell runs: a line, its input, or a file, whose contents are unknown.
func openShell(r *reader, c Command, in input) bool {
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
