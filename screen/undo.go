package screen

import (
	"fmt"
	"slices"
)

// Undo returns bytes that undo on a terminal what has been set on s, as far as it is
// known: modes, keyboards, character sets, colours, the scrolling region and so on, and
// an incomplete sequence. They leave the text and, on the main screen, mostly also the
// cursor. Nothing is set on s afterwards.
func (s *Screen) Undo() []byte {
	u := undoing{s: s}
	if s.parser.state != ground {
		u.do("\x18")
	}
	for _, o := range slices.Backward(slices.Clone(s.settings)) {
		if o.class != region {
			u.do(o.undo())
		}
	}
	u.modes()
	u.ink()
	coloured := s.pen != attrs{}
	u.screens()
	u.ink() // a saved cursor may have brought others
	if coloured || s.pen != (attrs{}) {
		u.do("\x1b[0m")
	}
	if s.setting(region, 0) != nil {
		u.do(classes[region].undo)
	}
	return u.out
}

// undoing collects the bytes of Undo, which the screen obeys as the terminal will.
type undoing struct {
	s   *Screen
	out []byte
}

func (u *undoing) do(text string) {
	if text != "" {
		u.out = append(u.out, text...)
		u.s.Write([]byte(text))
	}
}

func (u *undoing) modes() {
	m := &u.s.modes
	for _, f := range m.flags() {
		if f.on {
			u.do(fmt.Sprintf("\x1b[%s%dl", f.prefix, f.mode))
		}
	}
	if !m.wrap {
		u.do("\x1b[?7h")
	}
	if m.hidden {
		u.do("\x1b[?25h")
	}
	if m.shape > 0 {
		u.do("\x1b[0 q")
	}
	if m.insert {
		u.do("\x1b[4l")
	}
	if m.origin {
		u.do("\x1b[?6l")
		if u.s.on == &u.s.main {
			u.do("\x1b[999;1H") // the cursor went to the first row
		}
	}
}

// screens undoes the keyboards, and shows the main screen.
func (u *undoing) screens() {
	s := u.s
	hidden := &s.keyboards[1-s.shown()]
	u.do(s.keys().undo())
	switch {
	case s.on == &s.alt && (s.by == 1049 || s.cursorKept):
		u.do("\x1b[?1049l")
	case s.on == &s.alt:
		u.do(fmt.Sprintf("\x1b[?%dl", s.by))
	case hidden.undo() != "":
		u.do("\x1b[?47h" + hidden.undo() + "\x1b[?47l")
	}
	u.do(s.keys().undo())
}

// ink undoes character sets, links and protection.
func (u *undoing) ink() {
	s := u.s
	for i, set := range s.sets.designated {
		if set != 0 {
			u.do("\x1b" + string("()*+"[i]) + "B")
		}
	}
	if s.sets.level > 0 || s.sets.foreign() {
		u.do("\x0f")
	}
	if s.pen.ext.link != 0 {
		u.do("\x1b]8;;\x1b\\")
	}
	if s.pen.bg&protected != 0 {
		u.do("\x1b[0\"q")
	}
}

// Catch returns bytes that set on a terminal that shows the cells, the cursor and the
// modes of s, and on which the settings of from have been set, those of s: private modes
// that draw nothing, forms of keys, colours of the palette and the like.
func (s *Screen) Catch(from *Screen) (out []byte) {
	for _, o := range from.settings {
		if s.setting(o.class, o.n) == nil {
			out = append(out, o.undo()...)
		}
	}
	for _, o := range s.settings {
		if was := from.setting(o.class, o.n); was == nil || was.value != o.value {
			out = append(out, o.set()...)
		}
	}
	if mine, has := s.keys(), from.keys(); *mine != *has {
		out = append(out, has.undo()+mine.set()...)
	}
	return out
}

// Modes follows what a program sets on a terminal, without the terminal's cells. It is an
// io.Writer. The zero value is a fresh terminal.
type Modes struct{ s *Screen }

func (m *Modes) screen() *Screen {
	if m.s == nil {
		m.s = NewState(1, 1)
		m.s.blind = true
	}
	return m.s
}

// Write follows p. It never fails.
func (m *Modes) Write(p []byte) (int, error) { return m.screen().Write(p) }

// InSequence reports whether an escape sequence or a character has begun and not ended.
func (m *Modes) InSequence() bool { return m.s != nil && m.s.Pending() > 0 }

// WholeScreen reports whether a program shows the alternate screen.
func (m *Modes) WholeScreen() bool { return m.s != nil && m.s.WholeScreen() }

// CodedKeys reports whether keys that type text may come as sequences: with kitty's
// keyboard protocol, modifyOtherKeys or win32-input-mode.
func (m *Modes) CodedKeys() bool {
	if m.s == nil {
		return false
	}
	return m.s.KeyboardFlags() != 0 || m.s.setting(keyModifiers, 4) != nil || m.s.setting(privateOn, 9001) != nil
}

// Restore returns the bytes that undo what was set, see [Screen.Undo]. m is then as new.
func (m *Modes) Restore() []byte {
	if m.s == nil {
		return nil
	}
	out := m.s.Undo()
	m.s = nil
	return out
}
