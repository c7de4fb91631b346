package mcpentry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// errSyntax is returned for a text that is not JSON, even if comments and trailing commas are allowed.
var errSyntax = errors.New("the file is not valid JSON")

// member is one member of an object in a text. The value is text[value:end]; comma is the position of the comma after it, or -1.
type member struct {
	name                     string
	start, value, end, comma int
}

// object is an object in a text: text[open] is its opening brace, text[end] its closing one.
type object struct {
	open, end int
	members   []member
}

// scanner reads JSON with // and /* */ comments and trailing commas, which editors accept in their settings.
type scanner struct {
	text []byte
	at   int
}

// space skips white space and comments.
func (s *scanner) space() {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0:
			s.at++
		case bytes.HasPrefix(rest, []byte("\ufeff")) && s.at == 0:
			s.at += len("\ufeff")
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			s.at += n
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return // the caller finds the unfinished comment and fails
			}
			s.at += n + 4
		default:
			return
		}
	}
}

// peek returns the next byte that is neither space nor comment, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// value skips a value.
func (s *scanner) value() error {
	switch c := s.peek(); {
	case c == '{':
		_, err := s.object()
		return err
	case c == '[':
		return s.array()
	case c == '"':
		_, err := s.string()
		return err
	}
	start := s.at
	for s.at < len(s.text) && bytes.IndexByte([]byte(" \t\r\n,]}/"), s.text[s.at]) < 0 {
		s.at++
	}
	if !json.Valid(s.text[start:s.at]) {
		return errSyntax
	}
	return nil
}

func (s *scanner) string() (string, error) {
	start := s.at
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			var text string
			if json.Unmarshal(s.text[start:s.at], &text) != nil {
				return "", errSyntax
			}
			return text, nil
		}
	}
	return "", errSyntax
}

func (s *scanner) array() error {
	for s.at++; s.peek() != ']'; {
		if err := s.value(); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
		default:
			return errSyntax
		}
	}
	s.at++
	return nil
}

func (s *scanner) object() (object, error) {
	o := object{open: s.at}
	for s.at++; s.peek() != '}'; {
		if s.peek() != '"' {
			return o, errSyntax
		}
		m := member{start: s.at, comma: -1}
		var err error
		if m.name, err = s.string(); err != nil {
			return o, err
		}
		if s.peek() != ':' {
			return o, errSyntax
		}
		s.at++
		s.space()
		m.value = s.at
		if err := s.value(); err != nil {
			return o, err
		}
		m.end = s.at
		switch s.peek() {
		case ',':
			m.comma = s.at
			s.at++
		case '}':
		default:
			return o, errSyntax
		}
		o.members = append(o.members, m)
	}
	o.end = s.at
	s.at++
	return o, nil
}

// objectAt reads the object that begins at a position.
func objectAt(text []byte, at int) (object, error) {
	s := scanner{text, at}
	if s.peek() != '{' {
		return object{}, fmt.Errorf("%w: an object was expected", errSyntax)
	}
	return s.object()
}

// root reads a text that consists of one object.
func root(text []byte) (object, error) {
	o, err := objectAt(text, 0)
	if err != nil {
		return o, err
	}
	rest := scanner{text, o.end + 1}
	if rest.peek() != 0 {
		return o, errSyntax
	}
	return o, nil
}

// find returns the member with that name, or nil.
func (o object) find(name string) *member {
	for i := len(o.members) - 1; i >= 0; i-- { // the last member with the name counts
		if o.members[i].name == name {
			return &o.members[i]
		}
	}
	return nil
}

// servers returns the object that a text consists of, and the object in its member called section. inner is nil if there is no such member.
func servers(text []byte, section string) (top object, inner *object, err error) {
	if top, err = root(text); err != nil {
		return top, nil, err
	}
	m := top.find(section)
	if m == nil {
		return top, nil, nil
	}
	o, err := objectAt(text, m.value)
	return top, &o, err
}

// insert returns the text with a member added at the end of an object. value is indented by tabs, as if it began at the start of a line.
func insert(text []byte, o object, name, value string) []byte {
	outer, step := indentation(text, o)
	end := lineEnd(text)
	quoted, _ := json.Marshal(name) // cannot fail for a string
	added := end + outer + step + string(quoted) + ": " + strings.ReplaceAll(strings.ReplaceAll(value, "\t", step), "\n", end+outer+step)
	at := o.open + 1
	if n := len(o.members); n > 0 {
		last := o.members[n-1]
		if at = last.end; last.comma >= 0 {
			at = last.comma + 1
			added += ","
		} else {
			added = "," + added
			text, at = bytes.Join([][]byte{text[:at], []byte(","), text[at:]}, nil), at+1
			o.end++
			added = added[1:]
		}
		at = behindComment(text, at)
	}
	if !bytes.Contains(text[at:o.end], []byte("\n")) {
		added += end + outer
	}
	return bytes.Join([][]byte{text[:at], []byte(added), text[at:]}, nil)
}

// behindComment returns the end of the line if the rest of the line after at is a comment, otherwise at.
func behindComment(text []byte, at int) int {
	line := text[at:]
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	if rest := bytes.TrimLeft(line, " \t"); bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")) && bytes.HasSuffix(bytes.TrimSpace(rest), []byte("*/")) {
		return at + len(bytes.TrimRight(line, "\r"))
	}
	return at
}

// indentation returns the indentation of the line with an object's brace, and the additional indentation of its members.
func indentation(text []byte, o object) (outer, step string) {
	outer, step = blanks(text, o.open), "  "
	look := o
	if len(look.members) == 0 {
		if top, err := root(text); err == nil {
			look = top
		}
	}
	if len(look.members) > 0 {
		base := blanks(text, look.open)
		if own := blanks(text, look.members[0].start); strings.HasPrefix(own, base) && len(own) > len(base) {
			step = own[len(base):]
		}
	}
	return outer, step
}

// blanks returns the indentation of the line that contains the position at.
func blanks(text []byte, at int) string {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// lineEnd returns CR LF if the text has one, otherwise LF.
func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// remove returns the text without a member of an object, its line and one comma.
func remove(text []byte, o object, name string) []byte {
	for i := range o.members {
		m := o.members[i]
		if m.name != name {
			continue
		}
		from, to := m.start, m.end
		if m.comma >= 0 {
			to = m.comma + 1
		}
		before := bytes.TrimRight(text[:from], " \t\r\n")
		switch {
		case m.comma < 0 && i > 0 && len(before) == o.members[i-1].comma+1:
			from = o.members[i-1].comma // the comma before the member is removed
		case m.comma < 0 && i > 0: // a comment is between the comma and this member
			from = len(before)
			comma := o.members[i-1].comma
			text = append(bytes.Clone(text[:comma]), text[comma+1:]...)
			from, to = from-1, to-1
		default:
			from = len(before)
		}
		if alone := len(o.members) == 1; alone && len(bytes.TrimSpace(text[o.open+1:m.start])) == 0 && len(bytes.TrimSpace(text[to:o.end])) == 0 {
			to = o.end
		}
		return append(bytes.Clone(text[:from]), text[to:]...)
	}
	return text
}

// plain returns the text decoded, without comments and trailing commas. root must have accepted the text.
func plain(text []byte) any {
	s := scanner{text: text}
	var read func() any
	read = func() any {
		switch s.peek() {
		case '{':
			o, err := s.object()
			if err != nil {
				return nil
			}
			all := map[string]any{}
			for _, m := range o.members {
				inner := scanner{text, m.value}
				after := s
				s = inner
				all[m.name] = read()
				s = after
			}
			return all
		case '[':
			list := []any{}
			for s.at++; s.peek() != ']' && s.peek() != 0; {
				list = append(list, read())
				if s.peek() == ',' {
					s.at++
				}
			}
			s.at++
			return list
		}
		start := s.at
		if s.value() != nil {
			return nil
		}
		var v any
		_ = json.Unmarshal(text[start:s.at], &v) // it is valid
		return v
	}
	return read()
}
