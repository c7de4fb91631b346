package screen

import (
	"fmt"
	"strings"
	"unicode"

	"tether/internal/xterm"
)

// Render is the text of p for a reader without a terminal, as on a terminal cols wide.
func Render(p []byte, cols, rows int) string {
	s := New(cols, rows)
	s.Write(p)
	text, _ := s.History()
	return text
}

// Effort is the work that the screen has done, in cells.
func (s *Screen) Effort() int { return s.effort.done }

// The work allowed for each byte, and the credit that can be saved.
const (
	EffortPerByte = effortPerByte
	EffortSaved   = effortSaved
)

// Dump is all that can be seen of a screen.
func (s *Screen) Dump() xterm.Dump {
	d := xterm.Dump{Col: s.on.x, Row: s.on.y, Title: s.title, Modes: s.dumpModes()}
	for y := range s.rows {
		var cells []string
		for x := range s.cols {
			cells = append(cells, s.dumpCell(s.on.lines[y].at(x)))
		}
		d.Rows = append(d.Rows, strings.Join(cells, " "))
	}
	return d
}

func (s *Screen) dumpCell(c cell) string {
	chars := s.string(c.ch)
	if chars == "" && c.width() > 0 {
		chars = " "
	}
	text := fmt.Sprintf("%s|%d", chars, c.width())
	a := s.attrsOf(c)
	fg, bg := c.fg&^underline, c.bg
	style := a.ext.style
	if a.ext.link != 0 {
		style = 5
	}
	if c.fg&underline == 0 {
		style = 0
	}
	if fg != 0 || bg != 0 || style != 0 {
		text += fmt.Sprintf("|%x|%x", fg, bg)
	}
	if style != 0 {
		text += fmt.Sprintf("|%d|%x", style, a.ext.colour)
	}
	if a.ext.link != 0 {
		_, uri, _ := strings.Cut(s.tables.links[a.ext.link], ";")
		text += "|" + uri
	}
	return text
}

func (s *Screen) dumpModes() string {
	m := &s.modes
	kind := "normal"
	if s.on == &s.alt {
		kind = "alternate"
	}
	mouse := map[int]string{0: "none", 9: "x10", 1000: "vt200", 1002: "drag", 1003: "any"}[m.mouse]
	return fmt.Sprint(kind, " ", m.insert, " ", m.origin, " ", m.wrap, " ", m.reverseWrap, " ", m.cursorKeys, " ", m.keypad, " ", m.focus, " ", m.paste, " ", mouse, " ",
		m.hidden, " ", m.newline)
}

// Breaks reports whether a width breaks lines of the main screen, or leaves a part of the
// alternate one out of sight.
func (s *Screen) Breaks(cols int) bool {
	if cols >= s.cols {
		return false
	}
	for _, l := range s.alt.lines {
		if len(l.cells) > cols || l.fill != 0 {
			return true
		}
	}
	for _, l := range s.main.lines {
		if l.wrapped || l.filled() > cols {
			return true
		}
	}
	return false
}

// Widths are the ranges of characters that are not one column wide, as xterm.cjs reads
// them.
func Widths() string {
	var all []string
	for from := rune(0x20); from <= unicode.MaxRune; {
		to, w := from, width(from)
		for to <= unicode.MaxRune && width(to) == w {
			to++
		}
		if w != 1 {
			all = append(all, fmt.Sprintf("%x-%x-%x", from, to-1, w))
		}
		from = to
	}
	return strings.Join(all, ",")
}

// Settings is what is set on a screen and is neither a cell nor a mode of Dump, as far as
// another terminal can be given it.
func (s *Screen) Settings() string {
	var all []string
	for i := range s.settings {
		if text := s.settings[i].set(); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "") + " main " + s.keyboards[0].set() + " alternate " + s.keyboards[1].set()
}
