package shellint

import (
	"bytes"
	"math"
)

// cutField splits b at its first ";". Most fields are a letter or a few digits, which a
// loop finds sooner than a search.
func cutField(b []byte) (field, rest []byte, more bool) {
	for i := range min(len(b), 4) {
		if b[i] == ';' {
			return b[:i], b[i+1:], true
		}
	}
	if n := bytes.IndexByte(b, ';'); n >= 0 {
		return b[:n], b[n+1:], true
	}
	return b, nil, false
}

// mark adds the Mark of the sequence that just closed.
func (l *pass) mark(end int64, term Terminator) {
	b := &l.s.body
	m := l.r.newMark()
	m.Off, m.End, m.PS, m.Term = b.off, end, b.intro.ps, term
	m.Query, m.Truncated = b.intro.query, b.over
	m.payload = l.r.keep(b.text)
	m.decode(l.s)
}

// newMark adds a zero Mark.
func (r *Result) newMark() *Mark {
	n := len(r.Marks)
	if n < cap(r.Marks) {
		r.Marks = r.Marks[:n+1]
		r.Marks[n] = Mark{}
	} else {
		r.Marks = append(r.Marks, Mark{})
	}
	return &r.Marks[n]
}

// keep copies p to memory of the Result.
func (r *Result) keep(p []byte) []byte {
	n := len(r.arena)
	r.arena = append(r.arena, p...)
	return r.arena[n:len(r.arena):len(r.arena)]
}

// decode fills in the fields from the payload.
func (m *Mark) decode(s *Scanner) {
	m.Trusted = s.opts.Nonce == ""
	switch m.PS {
	case 133, 633:
		m.integrationMark(s)
	case 0, 1, 2:
		m.Kind = KindTitle
		m.text(m.payload)
	case 7:
		m.osc7(s)
	case 9:
		m.osc9(s)
	case 52:
		m.clipboard()
	case 1337:
		m.iterm(s)
	case 3008:
		m.Kind = KindReport
	default:
		m.Kind = KindQuery
	}
}

func (m *Mark) text(b []byte) { m.Text, m.HasText = string(b), true }

// integrationMark decodes an OSC 133 or 633. Their verbs A to D mean the same; a verb
// that means something is one letter.
func (m *Mark) integrationMark(s *Scanner) {
	m.Trusted = s.opts.Nonce == "" || hasNonce(m.payload, s.opts.Nonce)
	if len(m.payload) == 0 || len(m.payload) > 1 && m.payload[1] != ';' {
		return
	}
	var args []byte
	if len(m.payload) > 1 {
		args = m.payload[2:]
	}
	switch m.payload[0] {
	case 'A':
		m.Kind = KindPromptStart
	case 'B':
		m.Kind = KindPromptEnd
	case 'C':
		m.Kind = KindOutputStart
	case 'D':
		m.Kind = KindCommandEnd
		code, _, _ := cutField(args)
		m.Exit = parseExit(code)
	}
	if m.PS == 133 {
		m.verb133()
	} else if len(m.payload) > 1 {
		m.verb633(args, s)
	}
}

// verb133 decodes the parts that only OSC 133 has: more prompt verbs, and the command
// line as an option of C.
func (m *Mark) verb133() {
	switch m.payload[0] {
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

// verb633 decodes the texts of OSC 633 after the verb and ";".
func (m *Mark) verb633(args []byte, s *Scanner) {
	switch m.payload[0] {
	case 'E':
		m.Kind = KindLine
		line, _, _ := cutField(args)
		m.text(unescape(line))
	case 'P':
		m.Kind = KindProperty
		field, _, _ := cutField(args)
		key, value, ok := bytes.Cut(field, []byte{'='})
		if ok && string(key) == "Cwd" {
			m.Key = "Cwd"
			m.cwd(unescape(value), s)
			return
		}
		m.Key = string(key)
		if ok {
			m.text(unescape(value))
			m.reader(s)
		}
	}
}

// reader decodes the properties that only the reader of an adopted pane writes. They mean
// something only with the terminal's nonce: otherwise any program could resize it.
func (m *Mark) reader(s *Scanner) {
	if s.opts.Nonce == "" || !m.Trusted {
		return
	}
	switch m.Key {
	case "Size":
		if _, _, ok := parseSize(m.Text); ok {
			m.Kind = KindSize
		}
	case "Gap":
		m.Kind = KindGap
	}
}

// hasNonce reports whether a field after the verb is the nonce. Our scripts put it last.
func hasNonce(payload []byte, nonce string) bool {
	if n := len(payload) - len(nonce); n > 0 && payload[n-1] == ';' && string(payload[n:]) == nonce {
		return true
	}
	_, fields, more := cutField(payload)
	for more {
		var field []byte
		field, fields, more = cutField(fields)
		if string(field) == nonce {
			return true
		}
	}
	return false
}

// lastOption finds the last field key=value of the payload of an OSC 133, spaces before
// the key aside. rest is the payload from value on.
func lastOption(payload []byte, key string) (value, rest []byte, ok bool) {
	_, next, more := cutField(payload)
	for more {
		var field []byte
		here := next
		field, next, more = cutField(next)
		trimmed := bytes.TrimLeft(field, " ")
		if len(trimmed) > len(key) && trimmed[len(key)] == '=' && string(trimmed[:len(key)]) == key {
			skip := len(field) - len(trimmed) + len(key) + 1
			value, rest, ok = field[skip:], here[skip:], true
		}
	}
	return value, rest, ok
}

// parseExit parses a decimal integer with an optional minus sign; anything else is no
// exit code.
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
