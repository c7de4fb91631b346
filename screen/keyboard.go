package screen

import "fmt"

// keyboard has the flags of kitty's keyboard protocol
// (https://sw.kovidgoyal.net/kitty/keyboard-protocol/) for one of the two screens: those
// of the screen, and a stack of those that a program has pushed.
type keyboard struct {
	flags [1 + maxPushed]uint8 // the screen's own, and the pushed ones
	depth int                  // of the stack
	lost  int                  // how many more are at the bottom of the stack, unknown here
}

// maxPushed bounds the remembered flags. Kitty keeps seven.
const maxPushed = 8

func (k *keyboard) push(flags int) {
	if k.depth < maxPushed {
		k.depth++
	} else {
		copy(k.flags[1:], k.flags[2:])
		k.lost = min(k.lost+1, maxMode)
	}
	k.flags[k.depth] = uint8(flags & 31)
}

// pop takes n flags off the stack. If there are fewer, the screen's own flags are
// cleared, too.
func (k *keyboard) pop(n int) {
	for ; n > 0 && k.depth > 0; n-- {
		k.flags[k.depth] = 0
		k.depth--
	}
	if n > 0 {
		k.flags[0], k.lost = 0, max(k.lost-n, 0)
	}
}

// change sets (1), adds (2) or removes (3) flags.
func (k *keyboard) change(flags, how int) {
	at := &k.flags[k.depth]
	switch flags := uint8(flags & 31); how {
	case 1:
		*at = flags
	case 2:
		*at |= flags
	case 3:
		*at &^= flags
	}
}

// set returns what gives a fresh terminal's screen these flags.
func (k *keyboard) set() (text string) {
	if k.flags[0] != 0 {
		text = fmt.Sprintf("\x1b[=%du", k.flags[0])
	}
	for _, flags := range k.flags[1 : 1+k.depth] {
		text += fmt.Sprintf("\x1b[>%du", flags)
	}
	return text
}

// undo returns what gives the terminal's screen no flags again.
func (k *keyboard) undo() (text string) {
	if n := k.depth + k.lost; n > 0 {
		text = fmt.Sprintf("\x1b[<%du", n)
	}
	if k.flags[0] != 0 {
		text += "\x1b[=0u"
	}
	return text
}

// keys returns the flags of the shown screen.
func (s *Screen) keys() *keyboard { return &s.keyboards[s.shown()] }

// KeyboardFlags returns the flags of kitty's keyboard protocol that count.
func (s *Screen) KeyboardFlags() int { return int(s.keys().flags[s.keys().depth]) }

// shown returns the index of the shown screen.
func (s *Screen) shown() int {
	if s.on == &s.alt {
		return 1
	}
	return 0
}

// setKeyboard carries out CSI > flags u, CSI < n u and CSI = flags ; how u.
func (s *Screen) setKeyboard() {
	k := &s.parser
	switch k.collect {
	case '>':
		s.keys().push(k.param(0, 0))
	case '<':
		s.keys().pop(k.param(0, 1))
	case '=':
		s.keys().change(k.param(0, 0), k.param(1, 1))
	}
}
