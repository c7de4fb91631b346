package adopt

import (
	"bytes"
	"strings"
)

// style is how text looks at some place of a capture, in which each line continues where
// the one before it ended. A terminal must not: a new line at the bottom would get the
// background. So each line is drawn with the style before it, and ends without one.
type style struct {
	attrs, fg, bg, line string // sequences that set them
	link                string // OSC 8
	drawing             bool   // characters of the line drawing set, after SO
}

// maxAttrs bounds the attributes, in bytes: tmux resets them to remove one.
const maxAttrs = 256

// scan follows the sequences of tmux's capture-pane -e.
func (s *style) scan(text []byte) {
	for {
		at := bytes.IndexAny(text, "\x1b\x0e\x0f")
		if at < 0 {
			return
		}
		c, rest := text[at], text[at+1:]
		switch {
		case c != 0x1b:
			s.drawing, text = c == 0x0e, rest
		case bytes.HasPrefix(rest, []byte("]8;")):
			end := bytes.Index(rest, []byte("\x1b\\"))
			if end < 0 {
				return
			}
			s.link = "\x1b" + string(rest[:end+2])
			if bytes.HasSuffix(rest[:end], []byte(";")) {
				s.link = ""
			}
			text = rest[end+2:]
		case bytes.HasPrefix(rest, []byte("[")):
			end := bytes.IndexByte(rest, 'm')
			if end < 0 {
				return
			}
			s.sgr(string(rest[1:end]))
			text = rest[end+1:]
		default:
			text = rest
		}
	}
}

// sgr follows one sequence. tmux writes one for the attributes, which begins with 0 if
// one is removed, and one for each colour.
func (s *style) sgr(params string) {
	first, _, _ := strings.Cut(params, ";")
	first, _, _ = strings.Cut(first, ":")
	seq := "\x1b[" + params + "m"
	switch {
	case first == "0" || first == "":
		*s = style{attrs: seq, link: s.link, drawing: s.drawing}
		if strings.Trim(params, "0;") == "" {
			s.attrs = ""
		}
	case first == "39":
		s.fg = ""
	case first == "49":
		s.bg = ""
	case first == "59":
		s.line = ""
	case first == "58":
		s.line = seq
	case len(first) > 1 && (first[0] == '4' || strings.HasPrefix(first, "10")):
		s.bg = seq
	case len(first) > 1 && (first[0] == '3' || first[0] == '9'):
		s.fg = seq
	case len(s.attrs) < maxAttrs:
		s.attrs += seq
	}
}

// begin returns the bytes that set the style on a terminal without one.
func (s *style) begin() string {
	out := s.attrs + s.fg + s.bg + s.line + s.link
	if s.drawing {
		out += "\x0e"
	}
	return out
}

// end returns the bytes that leave the style.
func (s *style) end() string {
	out := ""
	if s.drawing {
		out = "\x0f"
	}
	if s.link != "" {
		out += "\x1b]8;;\x1b\\"
	}
	if s.attrs+s.fg+s.bg+s.line != "" {
		out += "\x1b[m"
	}
	return out
}

// styled returns the lines of the capture, each with a style of its own.
func (p *part) styled() []string {
	s := p.dropped
	out := make([]string, len(p.lines))
	for i, l := range p.lines {
		if len(l) == 0 {
			continue // no style begins in it
		}
		begin := s.begin()
		s.scan(l)
		out[i] = begin + string(l) + s.end()
	}
	return out
}
