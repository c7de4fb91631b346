package pty

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// Windows gives a program one line of text, not a list of arguments, and each program
// splits it by its own rules. Nearly all follow the rules of the C runtime; cmd.exe has
// others. The functions here are pure, so that they are tested on every system.

// maxLine is how long the line may be in UTF-16 units, its final NUL included
// (CreateProcess).
const maxLine = 32767

// maxBatchLine is how long cmd.exe lets one be (Microsoft, "Command prompt line string
// limitation").
const maxBatchLine = 8191

var (
	errNUL     = errors.New("an argument contains a NUL byte")
	errTooLong = errors.New("the arguments are too long for Windows")
)

// commandLine joins the arguments, beginning with the program's name, so that a program
// that reads its line as the C runtime does gets exactly these. path is the program that
// will run: cmd.exe gets the command that it must run unquoted, see interpreterLine.
func commandLine(path string, args []string) (string, error) {
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "\x00") }) {
		return "", errNUL
	}
	if strings.Contains(args[0], `"`) {
		return "", errors.New("the program's name contains a quotation mark")
	}
	var b strings.Builder
	b.WriteString(`"` + args[0] + `"`) // in the name a backslash never escapes
	rest := args[1:]
	if isInterpreter(path) {
		rest = interpreterLine(&b, rest)
	}
	for _, a := range rest {
		b.WriteByte(' ')
		quoteArg(&b, a)
	}
	return bounded(b.String(), maxLine)
}

func bounded(line string, most int) (string, error) {
	if n := len(utf16.Encode([]rune(line))) + 1; n > most {
		return "", fmt.Errorf("%w: %d characters, at most %d", errTooLong, n, most)
	}
	return line, nil
}

// plain are the characters that no program takes for anything but themselves. Others are
// put in quotation marks even where the C runtime does not ask for it: the programs of
// MSYS2, above all Git's bash, take apostrophes and wildcards for special as well.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:=,@%\\"

// quoteArg writes one argument. Within quotation marks, backslashes count only before a
// quotation mark: such backslashes are doubled, and one more escapes the mark itself.
// ("Parsing C command-line arguments", learn.microsoft.com)
func quoteArg(b *strings.Builder, a string) {
	if a != "" && strings.Trim(a, plain) == "" {
		b.WriteString(a)
		return
	}
	b.WriteByte('"')
	slashes := 0
	for i := range len(a) {
		switch c := a[i]; c {
		case '\\':
			slashes++
			b.WriteByte(c)
			continue
		case '"':
			b.WriteString(strings.Repeat(`\`, slashes+1))
		}
		slashes = 0
		b.WriteByte(a[i])
	}
	b.WriteString(strings.Repeat(`\`, slashes) + `"`)
}

// base returns the last element of a Windows path, in lower case.
func base(path string) string {
	return strings.ToLower(path[strings.LastIndexAny(path, `\/:`)+1:])
}

func isInterpreter(path string) bool {
	name := base(path)
	return name == "cmd.exe" || name == "cmd"
}

// interpreterLine writes the arguments of cmd.exe if they end in a command, which follows
// /c or /k, and returns the rest, which is quoted as usual. A single argument is a line
// in cmd.exe's own language, which knows no escaped quotation marks: it is passed
// unchanged, within the pair of marks that /s takes away. Several arguments are words.
func interpreterLine(b *strings.Builder, args []string) (rest []string) {
	at := slices.IndexFunc(args, func(a string) bool { a = strings.ToLower(a); return a == "/c" || a == "/k" })
	if at < 0 || at == len(args)-1 || slices.ContainsFunc(args[:at], func(a string) bool { return !isSwitch(a) }) {
		return args
	}
	strips := false
	for _, a := range args[:at] {
		strips = strips || strings.EqualFold(a, "/s")
		b.WriteString(" " + a)
	}
	if !strips {
		b.WriteString(" /s")
	}
	b.WriteString(" " + args[at] + ` "`)
	if words := args[at+1:]; len(words) == 1 {
		b.WriteString(words[0])
	} else {
		for i, a := range words {
			if i > 0 {
				b.WriteByte(' ')
			}
			quoteArg(b, a)
		}
	}
	b.WriteByte('"')
	return nil
}

func isSwitch(a string) bool { return strings.HasPrefix(a, "/") && strings.Trim(a, plain) == "" }

// isBatch tells files that Windows does not run itself but gives to cmd.exe.
func isBatch(path string) bool {
	name := strings.TrimRight(base(path), ". ") // as Windows reads names
	return strings.HasSuffix(name, ".bat") || strings.HasSuffix(name, ".cmd")
}

// batchLine returns the line for cmd.exe that runs the batch file at path with these
// arguments, without its own name. cmd.exe reads it twice: when it runs the line and when
// the file uses %1. So text that could be taken for a command, a variable or the end of
// the argument is protected: each argument is in quotation marks, marks in it are
// doubled, and a percent sign is followed by an empty substring of a variable that always
// exists, so that it begins no name. Delayed expansion (!name!) is off, extensions are
// on. An argument with a line break cannot be given to a batch file at all.
// (CVE-2024-24576; batch files see the doubling, too.)
func batchLine(path string, args []string) (string, error) {
	if strings.ContainsAny(path, "\"%\r\n\x00") || strings.HasSuffix(path, `\`) {
		return "", errors.New("cmd.exe cannot run a batch file with this name")
	}
	var b strings.Builder
	b.WriteString(`cmd.exe /d /e:on /v:off /s /c ""` + path + `"`)
	for _, a := range args {
		switch {
		case strings.Contains(a, "\x00"):
			return "", errNUL
		case strings.ContainsAny(a, "\r\n"):
			return "", errors.New("an argument contains a line break, which cmd.exe cannot pass to a batch file")
		}
		b.WriteString(` "`)
		slashes := 0
		for i := range len(a) {
			switch a[i] {
			case '\\':
				slashes++
			case '"': // programs the file hands this on to see \\ before a mark as the C runtime does
				b.WriteString(strings.Repeat(`\`, slashes) + `"`)
				slashes = 0
			case '%':
				b.WriteString("%%cd:~,")
				slashes = 0
			default:
				slashes = 0
			}
			b.WriteByte(a[i])
		}
		b.WriteString(strings.Repeat(`\`, slashes) + `"`)
	}
	b.WriteByte('"')
	return bounded(b.String(), maxBatchLine)
}
