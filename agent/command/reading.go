package command

import (
	"math"
	"strings"

	"tether/internal/clip"
)

// Word is one word of a command.
type Word struct {
	Text string // its value, or its source when that is not known
	// Fixed says that Text is the value. The value of other words depends on variables,
	// files or other commands, and may be none or several words.
	Fixed bool
}

// Command is one program and its arguments, or a builtin of the shell.
type Command struct {
	Words []Word // at least one
	// Apart says that another program runs it, which may add words, or run it elsewhere,
	// as somebody else or with another environment: xargs, ssh, sudo, env. Shells,
	// timeout and the like do none of that.
	Apart bool
}

// Name is the program that the first word names: without directory, in lower case, since
// some file systems ignore case. "" if it is unknown.
func (c Command) Name() string {
	if len(c.Words) == 0 || !c.Words[0].Fixed {
		return ""
	}
	return baseName(c.Words[0].Text)
}

// String joins the words with blanks, for people.
func (c Command) String() string {
	texts := make([]string, len(c.Words))
	for i, w := range c.Words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}

func baseName(path string) string {
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		path = path[i+1:]
	}
	name := strings.TrimSuffix(strings.ToLower(path), ".exe")
	switch {
	case strings.HasPrefix(name, "ld-linux"), strings.HasPrefix(name, "ld-musl"), strings.HasPrefix(name, "ld64.so"), strings.HasPrefix(name, "ld-2."):
		return "ld.so" // the loader, whose first argument is a program
	case strings.HasPrefix(name, "zf_"):
		return name[3:] // zsh has rm and others as its own
	}
	return name
}

// Kind is a kind of Finding.
type Kind string

// The findings.
const (
	Unparsed     Kind = "unparsed"     // the request cannot be read, or is too large or nested too deeply
	Dynamic      Kind = "dynamic"      // which program runs is decided when it runs
	Substitution Kind = "substitution" // the output of a command becomes text of the line: $(…), `…`, <(…)
	PipeToShell  Kind = "pipe"         // a shell runs the output of another command
	Eval         Kind = "eval"         // text is run as a command
	InlineCode   Kind = "code"         // an interpreter runs code that is an argument or its input
	Script       Kind = "script"       // a shell runs a file
	Interactive  Kind = "interactive"  // a shell or interpreter runs typed text
	Option       Kind = "option"       // a program that can run commands has an option that is not known, or that may do so
	Destroys     Kind = "destroys"     // its options say that files or work are lost
)

// Finding is something that a reader of the request should know.
type Finding struct {
	Kind Kind
	Text string // the place: the command, or its fault
	// Command is its subject, without words if the subject is the line.
	Command Command
}

// Reading lists everything that a request would run. The slices may share memory with one
// another, not with the request.
type Reading struct {
	// Commands are those that do the work, in the order of the text.
	Commands []Command
	// Outer are those that run one of the others: sh -c, env, xargs.
	Outer    []Command
	Findings []Finding
	// Writes are the files that are opened for writing by redirections. Their By has no
	// words.
	Writes []File
	// Files are those that commands write because of their arguments, as far as the table
	// of programs knows.
	Files []File
	// Sets are the variables that are set for commands.
	Sets []Setting
	// Scripts are the files that shells and interpreters run, and programs that are named
	// by a path.
	Scripts []Word
	// Moves are the directories to which the shell changes, in the order of the text.
	Moves []Word
	Lines int // texts that were read as lines for a shell
}

// File is one that a command writes.
type File struct {
	Name Word
	By   Command
	// Moves is how many of the reading's Moves, from the first, may have been made when
	// it is written.
	Moves int
}

// anytime, as File.Moves, says that a write may follow every move: functions, traps and
// aliases run later than they are written.
const anytime = math.MaxInt

// Setting gives a variable a value.
type Setting struct {
	Name  string
	Value Word
}

func (r *Reading) find(k Kind, text string) { r.add(Finding{Kind: k, Text: brief(text)}) }

func (r *Reading) findIn(k Kind, c Command) { r.add(Finding{k, brief(c.String()), c}) }

// add keeps a finding. If there are too many, the last one says so, because none may hide
// behind others.
func (r *Reading) add(f Finding) {
	if len(r.Findings) == maxFindings {
		r.Findings[maxFindings-1] = Finding{Kind: Unparsed, Text: "too much to look at"}
		return
	}
	r.Findings = append(r.Findings, f)
}

// Bounds of the reader. Beyond them a request counts as unparsed.
const (
	maxLine     = 64 << 10 // bytes
	maxWords    = 4096     // of one argv
	maxCommands = 1000
	maxDepth    = 8   // of commands behind commands
	maxFindings = 100 // the first ones are kept
	maxText     = 120 // bytes of a finding's text
)

// brief shortens the text of a command for a finding.
func brief(s string) string { return clip.Marked(s, maxText) }

// Argv reads words that are executed as they are.
func Argv(argv []string) *Reading {
	r := reader{out: &Reading{}}
	words := make([]Word, min(len(argv), maxWords))
	for i := range words {
		words[i] = Word{argv[i], true}
	}
	if len(argv) > maxWords {
		r.out.find(Unparsed, "too many words")
	}
	if len(argv) == 0 {
		r.out.find(Unparsed, "no command")
		return r.out
	}
	r.command(words, input{})
	return r.out
}

// Line reads a line, or several, for a POSIX shell or bash.
func Line(line string) *Reading {
	r := reader{out: &Reading{}}
	r.line(line, input{})
	if len(r.out.Commands)+len(r.out.Outer)+len(r.out.Findings)+len(r.out.Writes)+len(r.out.Sets) == 0 {
		r.out.find(Unparsed, "no command")
	}
	return r.out
}
