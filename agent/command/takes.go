package command

import "slices"

// Taker is a program's use of text that is typed into it.
type Taker uint8

// The takers.
const (
	// TakesUnknown: a prompt, a REPL, or an unknown program.
	TakesUnknown Taker = iota
	// TakesData: no typed text runs.
	TakesData
	// TakesLines: it is, or has in it, a shell that runs the lines.
	TakesLines
)

// filters only copy, count or search their input.
var filters = []string{"cat", "tee", "wc", "head", "tail", "sort", "uniq", "grep", "egrep", "fgrep", "rg", "tr", "cut", "nl", "rev", "tac", "fold", "paste", "jq", "sleep",
	"base64", "sha256sum", "md5sum", "xxd", "od", "hexdump", "column", "comm", "join", "true", "yes", "seq", "ping", "false", "echo", "printf", "date", "ls"}

// otherShells read lines of another language: they are judged as if they read this one.
var otherShells = []string{"fish", "nu", "xonsh", "csh", "tcsh", "pwsh", "powershell", "cmd", "elvish", "oil", "ysh", "rc", "es", "ion",
	"murex", "ngs", "scsh", "gash"}

// Takes returns the program's use of typed text.
func Takes(argv []string) Taker {
	if len(argv) == 0 || argv[0] == "" {
		return TakesUnknown
	}
	if argv[0][0] == '-' { // how a login shell is called
		argv = append([]string{argv[0][1:]}, argv[1:]...)
	}
	read := Argv(argv)
	for _, f := range read.Findings {
		if f.Kind == Interactive && !prompts(f.Command) {
			return TakesLines
		}
	}
	for _, c := range slices.Concat(read.Commands, read.Outer) {
		if slices.Contains(otherShells, c.Name()) && len(c.Words) == 1 {
			return TakesLines
		}
	}
	if len(read.Findings) == 0 && len(read.Commands) > 0 && !slices.ContainsFunc(read.Commands, func(c Command) bool { return !slices.Contains(filters, c.Name()) }) {
		return TakesData
	}
	return TakesUnknown
}

// prompts reports whether an interactive program reads typed text in its own language.
func prompts(c Command) bool {
	if slices.Contains(otherShells, c.Name()) {
		return false
	}
	if interpreterOf(c.Name()) != nil {
		return true
	}
	return slices.ContainsFunc([]*program{verbOf(c, 2), programs()[c.Name()]}, func(p *program) bool { return p != nil && p.prompt })
}
