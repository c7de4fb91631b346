package answers

import (
	"fmt"
	"strconv"
	"strings"

	"tether/screen"
	"tether/shellint"
)

// question is a question that this process may answer.
type question struct {
	kind     shellint.Query
	off, end int64
	text     string // the sequence
	command  int    // number of the shell's command that was running, 0: none
}

func answerable(q shellint.Query) bool {
	switch q {
	case shellint.QueryDA1, shellint.QueryStatus, shellint.QueryCursor, shellint.QueryMode, shellint.QueryKeyboard, shellint.QueryVersion, shellint.QueryColour:
		return true
	}
	return false
}

// answer returns the answer to a question, in a fixed form, "" if there is none. now is
// the screen at the question.
func (q *question) answer(now *screen.Screen) string {
	private := ""
	if strings.Contains(q.text, "?") {
		private = "?"
	}
	switch q.kind {
	case shellint.QueryDA1:
		return "\x1b[?62;22c"
	case shellint.QueryStatus:
		return "\x1b[0n"
	case shellint.QueryCursor:
		col, row := now.Cursor()
		return fmt.Sprintf("\x1b[%s%d;%dR", private, row+1, col+1)
	case shellint.QueryMode:
		n, err := strconv.Atoi(strings.Trim(q.text, "\x1b\u009b[?$p"))
		if err != nil || n < 0 || n > 65535 {
			return ""
		}
		return fmt.Sprintf("\x1b[%s%d;%d$y", private, n, now.Mode(n, private != ""))
	case shellint.QueryKeyboard:
		return fmt.Sprintf("\x1b[?%du", now.KeyboardFlags())
	case shellint.QueryVersion:
		return "\x1bP>|tether\x1b\\"
	}
	return q.colour()
}

// colour answers for the colours of text and background: white on black, as most
// terminals are.
func (q *question) colour() string {
	for _, c := range [...]struct{ ask, answer string }{{"10;?", "\x1b]10;rgb:ffff/ffff/ffff"}, {"11;?", "\x1b]11;rgb:0000/0000/0000"}} {
		for _, intro := range []string{"\x1b]", "\u009d"} {
			switch q.text {
			case intro + c.ask + "\a":
				return c.answer + "\a"
			case intro + c.ask + "\x1b\\", intro + c.ask + "\u009c":
				return c.answer + "\x1b\\"
			}
		}
	}
	return ""
}
