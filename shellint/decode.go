package shellint

import (
	"bytes"
	"math"
)

var semicolon = []byte{';'}

// mark adds the Mark of the sequence that just closed.
func (l *pass) mark(end int64, term Terminator) {
	b := &l.s.body
	l.r.Marks = append(l.r.Marks, Mark{
		Off: b.off, End: end, PS: b.intro.ps, Term: term, Query: b.intro.query,
		Trusted: l.s.opts.Nonce == "", Truncated: b.over,
	})
	m := &l.r.Marks[len(l.r.Marks)-1]
	if len(b.text) > 0 {
		m.payload = l.r.keep(b.text)
	}
	m.decode(l.s.opts.Nonce)
}

// keep copies p to memory of the Result.
func (r *Result) keep(p []byte) []byte {
	n := len(r.arena)
	r.arena = append(r.arena, p...)
	return r.arena[n:len(r.arena):len(r.arena)]
}

// decode fills in what the payload says.
func (m *Mark) decode(nonce string) {
	switch m.PS {
	case 133, 633:
		m.integrationMark(nonce)
	case 0, 1, 2:
		m.Kind = KindTitle
		m.text(m.payload)
	case 7:
		m.osc7()
	case 9:
		m.osc9()
	case 52:
		m.clipboard()
	case 1337:
		m.iterm()
	case 3008:
		m.Kind = KindReport
	default:
		m.Kind = KindQuery
	}
}

func (m *Mark) text(b []byte) { m.Text, m.HasText = string(b), true }

// integrationMark decodes an OSC 133 or 633. Their verbs A to D mean the same.
func (m *Mark) integrationMark(nonce string) {
	verb, args, hasArgs := bytes.Cut(m.payload, semicolon)
	if nonce != "" {
		m.Trusted = hasArgs && hasField(args, nonce)
	}
	if len(verb) != 1 {
		return
	}
	switch verb[0] {
	case 'A':
		m.Kind = KindPromptStart
	case 'B':
		m.Kind = KindPromptEnd
	case 'C':
		m.Kind = KindOutputStart
	case 'D':
		m.Kind = KindCommandEnd
		code, _, _ := bytes.Cut(args, semicolon)
		m.Exit = parseExit(code)
	}
	if m.PS == 133 {
		m.verb133(verb[0])
	} else if hasArgs {
		m.verb633(verb[0], args)
	}
}

// verb133 decodes what only OSC 133 has: more prompt verbs, and the command line as an option of C.
func (m *Mark) verb133(verb byte) {
	switch verb {
	case 'N':
		m.Kind = KindPromptStart
	case 'I':
		m.Kind = KindPromptEnd
	case 'P':
		if k, ok := m.Opt("k"); !ok || k == "i" {
			m.Kind = KindPromptStart
		}
	case 'C':
		if _, rest, ok := lastOption(m.payload, "cmdline"); ok {
			m.text(shellWord(rest))
		}
		if value, _, ok := lastOption(m.payload, "cmdline_url"); ok {
			m.text(percentDecode(value))
		}
	}
}

// verb633 decodes the texts of OSC 633.
func (m *Mark) verb633(verb byte, args []byte) {
	field, _, _ := bytes.Cut(args, semicolon)
	switch verb {
	case 'E':
		m.Kind = KindLine
		m.text(unescape(field))
	case 'P':
		m.Kind = KindProperty
		key, value, ok := bytes.Cut(field, []byte{'='})
		m.Key = string(key)
		if ok {
			m.text(unescape(value))
		}
		if m.Key == "Cwd" && ok {
			m.Kind = KindCwd
		}
	}
}

// hasField says whether one of the ";"-separated fields is want.
func hasField(fields []byte, want string) bool {
	for more := true; more; {
		var field []byte
		field, fields, more = bytes.Cut(fields, semicolon)
		if string(field) == want {
			return true
		}
	}
	return false
}

// lastOption finds the last field key=value of the payload of an OSC 133, spaces before the key aside. rest is the payload
// from value on.
func lastOption(payload []byte, key string) (value, rest []byte, ok bool) {
	_, next, more := bytes.Cut(payload, semicolon)
	for more {
		var field []byte
		here := next
		field, next, more = bytes.Cut(next, semicolon)
		trimmed := bytes.TrimLeft(field, " ")
		if len(trimmed) > len(key) && trimmed[len(key)] == '=' && string(trimmed[:len(key)]) == key {
			skip := len(field) - len(trimmed) + len(key) + 1
			value, rest, ok = field[skip:], here[skip:], true
		}
	}
	return value, rest, ok
}

// parseExit reads a whole decimal number, with a minus sign or not; anything else is no exit code.
func parseExit(b []byte) Exit {
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 {
		return Exit{}
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' || n > math.MaxInt64/10-1 {
			return Exit{}
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(b) {
		n = -n
	}
	return Exit{Code: n, Known: true}
}
