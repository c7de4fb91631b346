package adopt

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what is read from tmux, in bytes.
const (
	maxLine    = 2 << 20 // the rest of a longer line is dropped
	maxCapture = 4 << 20 // the oldest lines of a longer part of a reply are dropped
	readSize   = 64 << 10
)

// lines reads lines of any length with bounded memory.
type lines struct {
	r    *bufio.Reader
	long []byte
}

func newLines(f io.Reader) *lines { return &lines{r: bufio.NewReaderSize(f, readSize)} }

// next returns the next line without its end. It is valid until the next call.
func (l *lines) next() ([]byte, error) {
	s, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = l.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			l.long = append(l.long, s[:min(len(s), maxLine-len(l.long))]...)
			s, err = l.r.ReadSlice('\n')
		}
		s = append(l.long, s...)
	}
	if err != nil {
		return nil, err // a line without an end is cut off
	}
	return s[:len(s)-1], nil
}

// kind is what a line of tmux's control mode says.
type kind uint8

const (
	kindOther   kind = iota
	kindOutput       // %output, %extended-output
	kindPause        // %pause: tmux has dropped output that was not read in time
	kindLayout       // %layout-change
	kindSession      // %session-changed: the client is attached, or to another session
	kindWindow       // a window has come or gone
	kindExit         // %exit: the client is detached
	kindReply        // all parts of a reply
	kindFailed       // a command of the line failed, and those after it were not executed
)

// event is a line, or several that make a reply. It is valid until the next one.
type event struct {
	kind  kind
	pane  string // of kindOutput and kindPause
	data  []byte // of kindOutput: bytes of the pane; otherwise what follows the first word
	parts []part // of kindReply: the output of each command
	mixed bool   // of kindReply, see answer
}

// part is the output of one command.
type part struct {
	lines   [][]byte
	dropped style // how the first line begins, if earlier ones were dropped
	size    int
	heads   int // lines seen of the two before the output; 3 if they are others
}

// parser finds what lines of the control mode mean. It is pure.
//
// A reply's text may hold anything, also lines that look like those of tmux, since it has
// what a pane shows. So a command is asked for between two lines of a token that nobody
// can guess, see [ask]: only the token ends the text.
type parser struct {
	token string // of the last question, "" before
	open  bool   // inside a reply
	parts []part
}

// expect begins to look for the reply to a question with the token.
func (p *parser) expect(token string) { p.token, p.open, p.parts = token, false, nil }

// line returns what a line means.
func (p *parser) line(l []byte) event {
	if rest, ok := bytes.CutPrefix(l, []byte(p.token)); ok && p.token != "" {
		return p.sentinel(string(rest))
	}
	if p.open {
		p.parts[len(p.parts)-1].add(l)
		return event{}
	}
	word, rest, _ := bytes.Cut(l, []byte(" "))
	switch string(word) {
	case "%output":
		pane, data, _ := bytes.Cut(rest, []byte(" "))
		return output(pane, data)
	case "%extended-output": // %extended-output %1 AGE : DATA; other words may come before the colon
		pane, rest, _ := bytes.Cut(rest, []byte(" "))
		_, data, _ := bytes.Cut(rest, []byte(": "))
		return output(pane, data)
	case "%pause":
		return event{kind: kindPause, pane: string(rest)}
	case "%layout-change":
		return event{kind: kindLayout, data: rest}
	case "%session-changed":
		return event{kind: kindSession, data: rest}
	case "%window-close", "%unlinked-window-close", "%window-add":
		return event{kind: kindWindow, data: rest}
	case "%exit":
		return event{kind: kindExit, data: rest}
	}
	return event{}
}

// output returns the event of a pane's output, which has at least one byte.
func output(pane, data []byte) event {
	if len(data) == 0 {
		return event{}
	}
	return event{kind: kindOutput, pane: string(pane), data: unescape(data)}
}

// sentinel handles a line that begins with the token. A number begins the part of that
// number, "done" ends the last one, and "end" follows even if a command failed.
func (p *parser) sentinel(which string) event {
	n := len(p.parts)
	ended := n > 0 && p.parts[n-1].finish()
	if number, err := strconv.Atoi(which); err == nil && number == n && (ended || n == 0) {
		p.parts, p.open = append(p.parts, part{}), true
		return event{}
	}
	parts := p.parts
	p.expect("")
	if which == "done" && ended {
		return event{kind: kindReply, parts: parts}
	}
	return event{kind: kindFailed}
}

// add keeps a line of the part. The first two are the %end of the token before it and its
// own %begin.
func (p *part) add(l []byte) {
	if p.heads < 2 {
		p.heads++
		if !bytes.HasPrefix(l, []byte([]string{"%end ", "%begin "}[p.heads-1])) {
			p.heads = 3 // something stands between two commands: this is no reply
		}
		return
	}
	p.lines = append(p.lines, bytes.Clone(l))
	p.size += len(l)
	for p.size > maxCapture && len(p.lines) > 1 {
		p.dropped.scan(p.lines[0])
		p.size -= len(p.lines[0])
		p.lines = p.lines[1:]
	}
}

// finish removes the part's own %end and the %begin of the token behind it. tmux since
// 3.8 tells between the two that the command has paused or continued a pane.
func (p *part) finish() bool {
	n := len(p.lines) - 2
	if n > 0 && (bytes.HasPrefix(p.lines[n], []byte("%pause ")) || bytes.HasPrefix(p.lines[n], []byte("%continue "))) {
		p.lines = slices.Delete(p.lines, n, n+1)
		n--
	}
	if n < 0 || p.heads != 2 || !bytes.HasPrefix(p.lines[n], []byte("%end ")) || !bytes.HasPrefix(p.lines[n+1], []byte("%begin ")) {
		return false
	}
	p.lines = p.lines[:n]
	return true
}

// text returns the lines of a part that is short.
func (p *part) text() string { return string(bytes.Join(p.lines, []byte("\n"))) }

// ask returns the lines that ask for the output of commands, of which none reads what the
// pane prints meanwhile: tmux executes a line at once.
func ask(token string, commands ...string) string {
	var b strings.Builder
	for i, c := range commands {
		b.WriteString("display-message -p " + token + strconv.Itoa(i) + " ; " + c + " ; ")
	}
	return b.String() + "display-message -p " + token + "done\ndisplay-message -p " + token + "end\n"
}

// unescape decodes \ooo in place: so tmux writes control characters and backslashes.
func unescape(b []byte) []byte {
	at := bytes.IndexByte(b, '\\')
	if at < 0 {
		return b
	}
	out := b[:at]
	for b = b[at:]; len(b) > 0; {
		if n, ok := octal(b); ok {
			out, b = append(out, n), b[4:]
			continue
		}
		end := bytes.IndexByte(b[1:], '\\') + 1
		if end == 0 {
			end = len(b)
		}
		out, b = append(out, b[:end]...), b[end:]
	}
	return out
}

func octal(b []byte) (byte, bool) {
	if len(b) < 4 || b[0] != '\\' {
		return 0, false
	}
	n := 0
	for _, c := range b[1:4] {
		if c < '0' || c > '7' {
			return 0, false
		}
		n = n<<3 | int(c-'0')
	}
	return byte(n), n < 256
}
