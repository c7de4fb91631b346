package screen

import "strings"

// maxTitle bounds a title, in bytes.
const maxTitle = 1 << 10

// endOSC carries out a complete OSC: a title or a link. Others, and those longer than
// maxRaw, have no effect.
func (s *Screen) endOSC() {
	k := &s.parser
	s.last = 0
	what, text, _ := strings.Cut(string(k.raw[k.body:]), ";")
	if len(k.raw) >= maxRaw {
		s.remember(colours, 0, what == "4" || s.setting(colours, 0) != nil)
		return
	}
	switch what {
	case "0", "2":
		s.title = strings.ToValidUTF8(text[:min(len(text), maxTitle)], "")
	case "8":
		s.setLink(text)
	default:
		s.otherOSC(what, text)
	}
}

// setLink begins or ends a hyperlink.
func (s *Screen) setLink(text string) {
	id, uri, ok := strings.Cut(text, ";")
	switch {
	case !ok, uri == "" && strings.TrimSpace(id) != "":
		return
	case uri == "":
		s.pen.ext.link = 0
	default:
		s.tidy()
		s.pen.ext.link = s.tables.link(text)
	}
	s.extend()
	s.dip()
}

// Title returns the window title that the program set last, at most 1 KiB of it.
func (s *Screen) Title() string { return s.title }
