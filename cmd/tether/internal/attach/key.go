package attach

import (
	"strconv"
	"strings"
)

// key is a key that was pressed.
type key struct {
	kind  keyKind
	text  rune // what it types, '\r' for Enter; 0: nothing
	plain bool // it came as text, not as a sequence
}

type keyKind uint8

const (
	keyText  keyKind = iota // it types text
	keyOther                // it types something else
	keyNone                 // no key: a release, a modifier alone, the mouse, the focus, a terminal's answer
	keyPaste                // a bracketed paste begins
)

// decode returns the key of a control sequence with the bytes params before its final
// byte. Besides xterm's keys it knows those of kitty
// (https://sw.kovidgoyal.net/kitty/keyboard-protocol/), xterm's modifyOtherKeys in both
// formats, and Windows' win32-input-mode
// (https://github.com/microsoft/terminal/blob/main/doc/specs/%234999%20-%20Improved%20keyboard%20handling%20in%20Conpty.md).
func decode(params string, final byte) key {
	if params != "" && strings.IndexByte("<=>?", params[0]) >= 0 || strings.IndexByte("IOcnRty", final) >= 0 { // mouse, focus, answers
		return key{kind: keyNone}
	}
	p := fields(params)
	switch {
	case final == '_':
		return win32Key(p)
	case p.at(1, 1) == released:
		return key{kind: keyNone}
	case final == 'u':
		return kittyKey(p)
	case final == '~' && p.at(0, 0) == 27 && len(p) > 2:
		return typedKey(rune(p.at(2, 0)), p.at(1, 0)-1)
	case final == '~' && p.at(0, 0) == 200:
		return key{kind: keyPaste}
	case final == '~' && p.at(0, 0) == 201:
		return key{kind: keyNone}
	}
	return key{kind: keyOther}
}

// Bits of the modifiers of kitty and xterm, and the event of kitty that releases a key.
const (
	shift    = 1
	locks    = 64 | 128 // Caps Lock and Num Lock
	released = 3
)

// typedKey is a key that types text with these modifiers.
func typedKey(text rune, modifiers int) key {
	if modifiers&^(shift|locks) > 0 && modifiers > 0 || text == 0 {
		return key{kind: keyOther}
	}
	return key{text: text}
}

// Codes of kitty for keys without text, and for those of the keypad with text.
const (
	firstLock, lastLock         = 57358, 57360 // Caps, Scroll and Num Lock
	firstModifier, lastModifier = 57441, 57454
	keypadDot, keypadEnter      = 57409, 57414
	firstFunction, lastFunction = 57344, 63743 // all of these are in Unicode's private use area
)

// kittyKey decodes CSI code : shifted : base ; modifiers : event ; text u.
func kittyKey(p parameters) key {
	code, modifiers := p.at(0, 0), p.at(1, 0)-1
	switch {
	case code >= firstLock && code <= lastLock, code >= firstModifier && code <= lastModifier:
		return key{kind: keyNone}
	case code == keypadDot:
		code = '.'
	case code == keypadEnter:
		code = '\r'
	case code >= firstFunction && code <= lastFunction:
		return key{kind: keyOther}
	}
	switch {
	case p.at(2, 0) > 0:
		code = p.at(2, 0)
	case modifiers > 0 && modifiers&shift > 0 && p.at(0, 1) > 0:
		code = p.at(0, 1)
	case modifiers > 0 && modifiers&shift > 0 && code == '`': // the terminal does not tell: as on a US keyboard
		code = '~'
	case modifiers > 0 && modifiers&shift > 0 && code == '/':
		code = '?'
	}
	return typedKey(rune(code), modifiers)
}

// win32Key decodes CSI virtual key ; scan code ; character ; pressed ; state ; repeats _.
func win32Key(p parameters) key {
	switch char := rune(p.at(2, 0)); {
	case p.at(3, 0) == 0, char == 0 && isModifier(p.at(0, 0)):
		return key{kind: keyNone}
	case char == 0:
		return key{kind: keyOther}
	default:
		return key{text: char}
	}
}

// isModifier reports whether a virtual key of Windows is Shift, Ctrl, Alt, a lock or the
// Windows key.
func isModifier(vk int) bool {
	return vk >= 0x10 && vk <= 0x12 || vk == 0x14 || vk == 0x5b || vk == 0x5c || vk == 0x90 || vk == 0x91 || vk >= 0xa0 && vk <= 0xa5
}

// parameters are those of a control sequence, with their sub-parameters; -1 is an empty
// one.
type parameters [][]int

func fields(text string) (p parameters) {
	for field := range strings.SplitSeq(text, ";") {
		var all []int
		for sub := range strings.SplitSeq(field, ":") {
			n, err := strconv.Atoi(sub)
			if err != nil {
				n = -1
			}
			all = append(all, n)
		}
		p = append(p, all)
	}
	return p
}

// at returns a sub-parameter, 0 if it is absent.
func (p parameters) at(i, sub int) int {
	if i >= len(p) || sub >= len(p[i]) || p[i][sub] < 0 {
		return 0
	}
	return p[i][sub]
}
