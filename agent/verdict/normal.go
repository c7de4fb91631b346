package verdict

import (
	"bytes"
	"strings"
)

// normalizer takes out of lines what differs from one run to the next without a reason:
// times, durations, pids, ports, places in files, temporary paths, hashes and progress.
// It is not for concurrent use.
type normalizer struct {
	dirs []string // directories of the runs, under which paths are relative
	in   []byte
	at   int // how much of in was read
	out  []byte
}

// gone stands for what was taken out.
const gone = '#'

// line returns the text that two runs have in common. It is valid until the next call.
func (n *normalizer) line(text []byte) []byte {
	for _, dir := range n.dirs {
		if bytes.Contains(text, []byte(dir)) {
			text = bytes.ReplaceAll(text, []byte(dir), []byte("."))
		}
	}
	n.in, n.at, n.out = text, 0, n.out[:0]
	for n.at < len(n.in) {
		n.next()
	}
	return bytes.TrimRight(n.out, " ")
}

// next reads at least one byte.
func (n *normalizer) next() {
	switch c := n.in[n.at]; {
	case isDigit(c) && !n.afterWord():
		n.number()
	case isLetter(c) && !n.afterWord():
		n.word()
	case (c == '/' || c == '\\') && n.temporary():
	case (c == ':' || c == '(' || c == '[') && n.place():
	case c == ' ' || c == '\t' || c == '\r':
		n.blank()
	case c == 0xe2 && n.drawn():
	default:
		n.keep(1)
	}
}

// keep copies bytes.
func (n *normalizer) keep(size int) {
	n.out = append(n.out, n.in[n.at:n.at+size]...)
	n.at += size
}

// drop leaves out bytes. What follows what was left out is left out with it.
func (n *normalizer) drop(size int) {
	n.at += size
	if len(n.out) == 0 || n.out[len(n.out)-1] != gone {
		n.out = append(n.out, gone)
	}
}

// blank keeps one of several blanks, and none at the beginning.
func (n *normalizer) blank() {
	n.at++
	if len(n.out) > 0 && n.out[len(n.out)-1] != ' ' {
		n.out = append(n.out, ' ')
	}
}

func (n *normalizer) afterWord() bool { return n.at > 0 && isWord(n.in[n.at-1]) }

// after returns the byte so far from here, 0 beyond the end.
func (n *normalizer) after(i int) byte {
	if n.at+i < 0 || n.at+i >= len(n.in) {
		return 0
	}
	return n.in[n.at+i]
}

// rest is what was not read.
func (n *normalizer) rest() []byte { return n.in[n.at:] }

// number reads a word that begins with a digit.
func (n *normalizer) number() {
	rest := n.rest()
	digits, word := span(rest, isDigit), span(rest, isWord)
	if size := uuid(rest); size > 0 {
		n.drop(size)
		return
	}
	if isHash(rest[:word]) { // before durations: 67503595d0 is none
		n.drop(word)
		return
	}
	if size := clock(rest); size > 0 {
		n.drop(size)
		return
	}
	if size := duration(rest); size > 0 {
		n.drop(size)
		return
	}
	switch {
	case digits >= 9, rest[0] == '0' && word > 2 && rest[1] == 'x', n.asset():
		n.drop(word)
	case digits == word && (n.counter(rest[digits:]) || n.pid(rest[digits:])):
		n.drop(digits)
	default:
		n.keep(word)
	}
}

// counter reports whether a number is progress, such as [3/12], [ 45%] and 45%|, or the
// line's number before source text.
func (n *normalizer) counter(behind []byte) bool {
	before := bytes.TrimRight(n.in[:n.at], " ")
	gutter := bytes.TrimLeft(behind, " ")
	first := len(bytes.Trim(before, " >|")) == 0
	switch {
	case first && (bytes.HasPrefix(gutter, []byte("|")) || bytes.HasPrefix(gutter, []byte("│"))):
		return true
	case bytes.HasPrefix(behind, []byte("%|")), bytes.HasPrefix(behind, []byte("%]")):
		return true
	case bytes.HasSuffix(before, []byte("[")) && bytes.HasPrefix(behind, []byte("/")):
		return true
	}
	i := bytes.LastIndexByte(before, '[')
	return i >= 0 && bytes.HasPrefix(behind, []byte("]")) && bytes.HasSuffix(before, []byte("/")) && span(before[i+1:], isDigit) == len(before)-i-2
}

// pid reports whether a number is that of a process: ==12==, or name[12]:.
func (n *normalizer) pid(behind []byte) bool {
	return n.after(-1) == '=' && n.after(-2) == '=' && bytes.HasPrefix(behind, []byte("==")) ||
		n.after(-1) == '[' && n.at > 1 && isWord(n.after(-2)) && bytes.HasPrefix(behind, []byte("]:"))
}

// word reads a word that begins with a letter.
func (n *normalizer) word() {
	rest := n.rest()
	size := span(rest, isWord)
	word := rest[:size]
	if size := uuid(rest); size > 0 {
		n.drop(size)
		return
	}
	if isHash(word) || n.asset() {
		n.drop(size)
		return
	}
	if size := calendar(rest); size > 0 {
		n.drop(size)
		return
	}
	n.keep(size)
	if numbered(word) {
		behind := n.rest()
		gap := span(behind, func(c byte) bool { return c == ' ' || c == '=' || c == ':' || c == '#' || c == '(' })
		if digits := span(behind[min(gap, len(behind)):], isDigit); gap <= 2 && digits > 0 {
			n.keep(gap)
			n.drop(digits)
		}
	}
}

// numbered reports whether the number after a word differs from run to run.
func numbered(word []byte) bool {
	if len(word) > len("goroutine") {
		return false
	}
	switch strings.ToLower(string(word)) {
	case "pid", "ppid", "tid", "process", "port", "goroutine", "thread", "line", "column", "col":
		return true
	}
	return false
}

// asset drops the hash in a name such as index-DiwrgTda.js, which may hold - and _.
func (n *normalizer) asset() bool {
	const size = 8
	if c := n.after(-1); c != '-' && c != '.' || n.after(size) != '.' || !isLetter(n.after(size+1)) {
		return false
	}
	hash := n.rest()[:size]
	var digit, upper, lower bool
	for i, c := range hash {
		switch {
		case !isWord(c) && c != '-':
			return false
		case isDigit(c):
			digit = true
		case c >= 'A' && c <= 'Z':
			upper = upper || i > 0
		case isLetter(c):
			lower = true
		}
	}
	if !digit && !(upper && lower) {
		return false
	}
	n.drop(size - span(hash, isWord)) // the caller drops the rest
	return true
}

// temporary drops the name of a temporary file or directory.
func (n *normalizer) temporary() bool {
	rest := n.rest()
	for _, dir := range []string{"/private/var/folders/", "/var/folders/", "/private/tmp/", "/tmp/", "/var/tmp/", "/dev/shm/", `\Temp\`, "/Temp/"} {
		if !bytes.HasPrefix(rest, []byte(dir)) {
			continue
		}
		size := len(dir)
		if strings.HasSuffix(dir, "folders/") {
			if i := bytes.Index(rest, []byte("/T/")); i > 0 {
				size = i + len("/T/")
			}
		}
		n.out = append(n.out, "/tmp/"...)
		n.drop(size + span(rest[size:], func(c byte) bool { return isWord(c) || c == '-' || c == '.' || c == '~' || c == '+' || c == '@' }))
		return true
	}
	return false
}

// place drops the line and the column behind a file's name, and the port behind a host's:
// a.go:12:5, a.ts(12,5), localhost:5173, (node:123).
func (n *normalizer) place() bool {
	open := n.in[n.at]
	if !isDigit(n.after(1)) || !n.placed(open) {
		return false
	}
	size, sep, end := 1, open, byte(0)
	switch open {
	case '(':
		sep, end = ',', ')'
	case '[':
		sep, end = ',', ']'
	}
	for {
		size += span(n.rest()[size:], isDigit)
		if n.after(size) != sep || !isDigit(n.after(size+1)) {
			break
		}
		size++
	}
	if end != 0 && n.after(size) != end || end == 0 && isLetter(n.after(size)) {
		return false
	}
	n.keep(1)
	n.drop(size - 1)
	return true
}

// placed reports whether a file or a host is named before.
func (n *normalizer) placed(open byte) bool {
	from := bytes.LastIndexAny(n.in[:n.at], " \t\"'`(<>=|") + 1
	name := n.in[from:n.at]
	switch {
	case len(name) == 0:
		return false
	case open != ':':
		dot := bytes.LastIndexByte(name, '.')
		return open == '(' && dot > 0 && dot < len(name)-1
	case string(name) == "node" && from > 0 && n.in[from-1] == '(':
		return true
	}
	return bytes.HasSuffix(name, []byte("localhost")) || bytes.ContainsAny(name, `./\]`)
}

// drawn drops characters of spinners (Braille) and of bars.
func (n *normalizer) drawn() bool {
	second := n.after(1)
	if second < 0xa0 || second > 0xa3 { // U+2800 to U+28FF
		if third := n.after(2); second != 0x96 || third < 0x81 || third > 0x95 { // U+2581 to U+2595
			return false
		}
	}
	n.at = min(n.at+3, len(n.in))
	return true
}

// uuid returns the length of a UUID at the beginning of p, 0 if there is none.
func uuid(p []byte) int {
	const form = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"
	if len(p) < len(form) || p[8] != '-' {
		return 0
	}
	for i := range len(form) {
		hex := isDigit(p[i]) || p[i]|0x20 >= 'a' && p[i]|0x20 <= 'f'
		if (form[i] == '-') != (p[i] == '-') || form[i] != '-' && !hex {
			return 0
		}
	}
	return len(form)
}

// isHash reports whether a word is a hash, or an id that was made at random.
func isHash(word []byte) bool {
	if len(word) < 7 {
		return false
	}
	digits, upper, lower, hex := 0, 0, 0, true
	for _, c := range word {
		switch {
		case isDigit(c):
			digits++
		case c >= 'a' && c <= 'z':
			lower++
			hex = hex && c <= 'f'
		case c >= 'A' && c <= 'Z':
			upper++
			hex = hex && c <= 'F'
		default:
			return false
		}
	}
	if hex {
		return digits > 0 && digits < len(word) || len(word) >= 32
	}
	return len(word) >= 16 && digits >= 3 && (upper > 0 && lower > 0 || digits >= 6)
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isWord(c byte) bool   { return isDigit(c) || isLetter(c) || c == '_' }

// span returns how many of the first bytes are of a class.
func span(p []byte, class func(byte) bool) int {
	for i, c := range p {
		if !class(c) {
			return i
		}
	}
	return len(p)
}
