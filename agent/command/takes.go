package command

import "slices"

// Taker is what becomes of text that is typed into a program.
type Taker uint8

// The takers.
const (
	// TakesUnknown: a prompt, a REPL, or a program of which nothing is known.
	TakesUnknown Taker = iota
	// TakesData: whatever is typed, nothing runs.
	TakesData
	// TakesLines: it is, or has in it, a shell that runs the lines.
	TakesLines
)

// filters only copy, count or look for what comes in.
var filters = []string{"cat", "tee", "wc", "head", "tail", "sort", "uniq", "grep", "egrep", "fgrep", "rg", "tr", "cut", "nl", "rev", "tac", "fold", "paste", "jq", "sleep",
	"base64", "sha256sum", "md5sum", "xxd", "od", "hexdump", "column", "comm", "join", "true", "yes", "seq", "ping", "false", "echo", "printf", "date", "ls"}

// otherShells read lines of another language: they are judged as if they read
// this one.
var otherShells = []string{"fish", "nu", "xonsh", "csh", "tcsh", "pwsh", "powershell", "cmd", "elvish", "oil", "osh", "ysh"}

// Takes returns what becomes of text that is typed into the program.
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

// prompts reports whether what is typed into an interactive program is in a
// language of its own.
func prompts(c Command) bool {
	if slices.Contains(otherShells, c.Name()) {
		return false
	}
	if interpreterOf(c.Name()) != nil {
		return true
	}
	for _, p := range []*program{verbOf(c, 2), programs()[c.Name()]} {
		if p != nil && p.prompt {
			return true
		}
	}
	return false
}
