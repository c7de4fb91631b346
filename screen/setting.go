package screen

import (
	"slices"
	"strconv"
	"strings"
)

// setting is something that a program has set on the terminal and that is neither a cell
// nor one of modes: private modes that draw nothing here, forms of keys, colours of the
// palette, and so on. A Screen only remembers it, for [Screen.Replay] and [Screen.Undo].
type setting struct {
	class class
	n     int    // which one of its class
	value string // as the program wrote it, if the class needs that
}

// Bounds of settings. The palette has 256 colours. A terminal keeps what exceeds them: it
// is not undone.
const (
	maxSettings = 512
	maxValue    = 64    // bytes; a longer value is undone, but not set on another terminal
	maxMode     = 65535 // the largest number of a mode
)

// class is a group of settings that are set, and undone, alike.
type class uint8

const (
	ansiOn       class = iota
	ansiOff            // a mode that is usually on
	privateOn          // CSI ? n h
	privateOff         // a mode that is usually on
	restored           // CSI ? n r: a mode that may be on
	vt52               // CSI ? 2 l
	columns132         // CSI ? 3 h, which clears the screen
	keyModifiers       // XTMODKEYS: modifyOtherKeys is number 4
	keyFormat          // XTFMTKEYS
	titleMode          // XTSMTITLE
	single             // a sequence of singles, n is its index there
	charset            // a set of characters of G0 to G3 that charsets does not have
	tabStops           // they are in the grid, too
	region             // it is in the grid, too
	eightBit           // S8C1T: the terminal sends 8-bit controls
	latin1             // UTF-8 is off
	printing           // everything goes to the printer
	autoPrint
	keyStrings   // DECUDK: keys that type a text
	colour       // OSC 4
	colours      // OSC 4 with more colours than a string may have
	special      // OSC 5
	dynamic      // OSC 10 to 19
	kittyColours // OSC 21
	tabColour    // OSC 6 of iTerm2
	progress     // OSC 9;4
	pointer      // OSC 22
	font         // OSC 50
	cursorFont   // OSC 50 of Konsole, with the shape of the cursor
)

// classes has, for each class, the sequences that set it on another terminal, and that
// undo it; "" is none. {n} and {v} stand for number and value. They follow xterm's
// control sequences page and the pages of kitty, iTerm2, ConEmu and Konsole.
var classes = [...]struct{ set, undo string }{
	ansiOn: {"\x1b[{n}h", "\x1b[{n}l"}, ansiOff: {"\x1b[{n}l", "\x1b[{n}h"}, privateOn: {"\x1b[?{n}h", "\x1b[?{n}l"}, privateOff: {"\x1b[?{n}l", "\x1b[?{n}h"},
	restored: {"", "\x1b[?{n}l"}, vt52: {"", "\x1b<"}, columns132: {"", "\x1b[?3l"}, keyModifiers: {"\x1b[>{v}", "\x1b[>{n}m"}, keyFormat: {"\x1b[>{v}", "\x1b[>{n}f"},
	titleMode: {"\x1b[>{n}t", "\x1b[>{n}T"}, single: {"\x1b[{v}", ""}, charset: {"", "\x1b{v}B"}, tabStops: {"", "\x1b[?5W"}, region: {"", "\x1b7\x1b[r\x1b8"},
	eightBit: {"", "\x1b F"}, latin1: {"", "\x1b%G"}, printing: {"", "\x1b[4i"}, autoPrint: {"", "\x1b[?4i"}, keyStrings: {"", "\x1bP0;1|\x1b\\"},
	colour: {"\x1b]4;{n};{v}\x1b\\", "\x1b]104;{n}\x1b\\"}, colours: {"", "\x1b]104\x1b\\"}, special: {"\x1b]5;{n};{v}\x1b\\", "\x1b]105;{n}\x1b\\"},
	dynamic: {"\x1b]{n};{v}\x1b\\", "\x1b]1{n}\x1b\\"}, tabColour: {"", "\x1b]6;1;bg;*;default\x1b\\"},
	kittyColours: {"", "\x1b]21;foreground;background;cursor;cursor_text;selection_foreground;selection_background\x1b\\"},
	progress:     {"\x1b]9;4;{v}\x1b\\", "\x1b]9;4;0\x1b\\"}, pointer: {"\x1b]22;{v}\x1b\\", "\x1b]22;\x1b\\"},
	font: {"", "\x1b]50;#0\x1b\\"}, cursorFont: {"", "\x1b]50;CursorShape=0\x1b\\"},
}

// singles are control sequences with one parameter that have one value at a time: prefix
// or intermediate byte, final byte, the greatest value that is a terminal's own, and what
// sets that.
var singles = [...]struct {
	collect uint32
	final   byte
	most    int
	undo    string
}{
	{'>', 'p', 1, "\x1b[>1p"},     // the pointer
	{'"', 'p', 0, "\x1b[64;1\"p"}, // level of conformance
	{'$', '}', 0, "\x1b[0$}"},     // output goes to the status line
	{'$', '~', 0, "\x1b[0$~"},     // the status line
	{'*', 'x', 1, "\x1b[*x"},      // attributes change in rectangles
	{'\'', 'z', 0, "\x1b[0'z"},    // reports of the pointer
	{'\'', '{', 0, "\x1b[0'{"},
}

// usual are modes that are on in a fresh terminal, or in most: a terminal is left with
// these on. 7 and 25 are in modes.
var usual = map[class][]int{
	ansiOn:    {12},
	privateOn: {1007, 1034, 1035, 1036, 1070},
}

// notOff are modes that must not be reset when it is not known whether they are set.
var notOff = []int{2, 7, 25, 47, 1007, 1034, 1035, 1036, 1047, 1048, 1049, 1070}

// bytes returns a sequence of the setting's class with the setting's number and value.
func (o *setting) bytes(format string) string {
	return strings.NewReplacer("{n}", strconv.Itoa(o.n), "{v}", o.value).Replace(format)
}

func (o *setting) set() string {
	if len(o.value) > maxValue {
		return ""
	}
	return o.bytes(classes[o.class].set)
}

func (o *setting) undo() string {
	if o.class == single {
		return singles[o.n].undo
	}
	return o.bytes(classes[o.class].undo)
}

// keep remembers a setting in place of the one before.
func (s *Screen) keep(c class, n int, value string) {
	s.forget(c, n)
	if len(s.settings) < maxSettings {
		if len(value) > maxValue || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			value = strings.Repeat("?", maxValue+1)
		}
		s.settings = append(s.settings, setting{c, n, value})
	}
}

// forget forgets a setting. A negative n stands for all of the class.
func (s *Screen) forget(c class, n int) {
	if len(s.settings) > 0 {
		s.settings = slices.DeleteFunc(s.settings, func(o setting) bool { return o.class == c && (n < 0 || o.n == n) })
	}
}

// remember keeps or forgets a setting.
func (s *Screen) remember(c class, n int, on bool) {
	if on {
		s.keep(c, n, "")
	} else {
		s.forget(c, n)
	}
}

// setting returns the setting of a class and number, or nil.
func (s *Screen) setting(c class, n int) *setting {
	for i := range s.settings {
		if o := &s.settings[i]; o.class == c && o.n == n {
			return o
		}
	}
	return nil
}

// setMode remembers a mode that draws nothing here; kind is ansiOn or privateOn.
func (s *Screen) setMode(kind class, p int, on bool) {
	switch {
	case p == 0 || p > maxMode:
	case kind == privateOn && p == 2:
		s.remember(vt52, 0, !on)
	case kind == privateOn && p == 3:
		s.remember(columns132, 0, on)
	case slices.Contains(usual[kind], p):
		s.remember(kind+1, p, !on)
	default:
		s.remember(kind, p, on)
	}
}

// setKeys carries out CSI > n ; v m, CSI > n ; v f and CSI > n n, which change the form
// of keys. Without a value the terminal's own form comes back.
func (s *Screen) setKeys(final byte) {
	k := &s.parser
	c := keyModifiers
	if final == 'f' {
		c = keyFormat
	}
	n := k.param(0, 0)
	switch {
	case final == 'n':
		s.keep(c, n, strconv.Itoa(n)+"n")
	case k.n > 1 && k.params[1] > 0:
		s.keep(c, n, strconv.Itoa(n)+";"+strconv.Itoa(k.params[1])+string(final))
	case k.n == 1 && len(k.raw) > 0 && k.raw[len(k.raw)-2] == '>': // no number
		s.forget(c, -1)
	default:
		s.forget(c, n)
	}
}

// other carries out control sequences that draw nothing and that no other function knows.
func (s *Screen) other(final byte) {
	k := &s.parser
	n := k.param(0, 0)
	switch {
	case k.collect == '>' && (final == 'm' || final == 'f' || final == 'n'):
		s.setKeys(final)
		return
	case k.collect == '>' && (final == 't' || final == 'T'):
		for i := range k.n {
			s.remember(titleMode, k.param(i, 0), final == 't')
		}
		return
	case final == 'i' && (k.collect == 0 || k.collect == '?') && (n == 4 || n == 5):
		s.remember(map[uint32]class{0: printing, '?': autoPrint}[k.collect], 0, n == 5)
		return
	}
	for i, o := range singles {
		if o.collect == k.collect && o.final == final {
			if s.forget(single, i); n > o.most && o.undo != string(k.raw) {
				s.keep(single, i, string(k.raw[2:]))
			}
		}
	}
}

// otherOSC carries out an OSC that draws nothing.
func (s *Screen) otherOSC(what, text string) {
	n, err := strconv.Atoi(what)
	switch {
	case err != nil:
	case n == 4, n == 5:
		s.setColours(map[int]class{4: colour, 5: special}[n], text)
	case n >= 10 && n <= 19:
		for i, v := range strings.Split(text, ";") {
			if v != "?" && n+i <= 19 {
				s.keep(dynamic, n+i, v)
			}
		}
	case n == 104, n == 105:
		s.resetColours(map[int]class{104: colour, 105: special}[n], text)
	case n >= 110 && n <= 119:
		s.forget(dynamic, n-100)
	case n == 6 && strings.HasPrefix(text, "1;bg;"):
		s.remember(tabColour, 0, text != "1;bg;*;default")
	case n == 9:
		if state, ok := strings.CutPrefix(text, "4;"); ok {
			if s.forget(progress, 0); state != "" && state[0] != '0' {
				s.keep(progress, 0, state)
			}
		}
	case n == 21 && strings.Contains(text, "="):
		s.keep(kittyColours, 0, "")
	case n == 21:
		s.forget(kittyColours, 0)
	case n == 22:
		if s.forget(pointer, 0); text != "" {
			s.keep(pointer, 0, text)
		}
	case n == 50 && strings.HasPrefix(text, "CursorShape="):
		s.remember(cursorFont, 0, text != "CursorShape=0")
	case n == 50 && text != "?":
		s.remember(font, 0, text != "#0")
	}
}

// setColours carries out OSC 4 and 5: pairs of a number and a colour.
func (s *Screen) setColours(c class, text string) {
	fields := strings.Split(text, ";")
	for ; len(fields) > 1; fields = fields[2:] {
		if n, err := strconv.Atoi(fields[0]); err == nil && n >= 0 && n < maxMode && fields[1] != "?" {
			s.keep(c, n, fields[1])
		}
	}
}

// resetColours carries out OSC 104 and 105.
func (s *Screen) resetColours(c class, text string) {
	if text == "" {
		s.forget(c, -1)
		s.forget(colours, 0)
		return
	}
	for field := range strings.SplitSeq(text, ";") {
		if n, err := strconv.Atoi(field); err == nil {
			s.forget(c, max(n, 0))
		}
	}
}

// chooseOther remembers a set of characters that Screen does not know. The last
// intermediate bytes of its name may be several.
func (s *Screen) chooseOther(inter uint32, c byte) {
	first := inter
	for first > 0xff {
		first >>= 8
	}
	if first < '(' || first > '/' || first == ',' {
		return
	}
	n := int(first - '(')
	if first >= '-' {
		n = int(first-'-') + 1
	}
	if s.forget(charset, n); inter > 0xff || first >= '-' || c != 'B' && c != '0' && c != 'A' {
		s.keep(charset, n, string("()*+"[n]))
	}
}

// clearsKeyStrings reports whether the parameters of a DECUDK clear all texts first: Ps
// is 0.
func (k *parser) clearsKeyStrings() bool {
	ps, _, _ := strings.Cut(string(k.raw[k.body:]), ";")
	return strings.Trim(ps, "0") == ""
}

// keyStringsSet reports whether the string of a DCS up to now defines texts for keys
// (DECUDK): Ps ; Ps | key / text.
func (k *parser) keyStringsSet() bool {
	return strings.HasPrefix(strings.TrimLeft(string(k.raw[k.body:]), "0123456789;"), "|")
}
