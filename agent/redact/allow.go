package redact

import "strings"

// The escape and control sequences that leave the machine. A sequence that is not listed
// does not leave: a terminal may answer it, print, or do something unforeseen. The lists
// follow xterm's control sequences page and the protocol pages of kitty and other
// terminals; strings (OSC, DCS, APC) are judged in judge.go.
var (
	// escapes7 are the final bytes of sequences without an intermediate byte, and of C1
	// controls: cursor, index, tab stop, reset, keypad and shifts, and ST.
	escapes7 = "6789=>DEHMNOcno|}~\\"
	// escapeInter are the final bytes behind intermediate bytes. A character set may have
	// any. ESC % @ is missing: it ends UTF-8, so that bytes of later characters would be
	// C1 controls, which are not looked for.
	escapeInter = map[byte]string{'#': "34568", ' ': "FLMN", '%': "G"}

	// controls has, by prefix and final byte, the control sequences without an
	// intermediate byte that pass with any parameters.
	controls = [5][256]bool{
		0: finals("@ABCDEFGHIJKLMPSTXZ^`abdefghjklmrsu"),
		1: finals("u"),      // CSI <: kitty's keyboard, taken back
		2: finals("u"),      // CSI =: kitty's keyboard
		3: finals("mnpu"),   // CSI >: modifyOtherKeys, the pointer, kitty's keyboard
		4: finals("JKWlrs"), // CSI ?: erasing, tab stops, modes that are reset, kept and taken back; see modes
	}
	// intermediates are the sequences with one intermediate byte and without a prefix:
	// scrolling sideways and the shape of the cursor; reset; protection; rectangles;
	// columns; stacks of colours.
	intermediates = map[byte]string{' ': "@Aq", '!': "p", '"': "pq", '$': "rtvxz{", '*': "x", '\'': "}~", '#': "pqPQ{}"}
	// modes are those that CSI ? h may set. Others answer (2048), or make a terminal send
	// bytes that nobody has typed (2031).
	modes = func() (t map[int]bool) {
		t = map[int]bool{}
		for _, mode := range []int{1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 25, 30, 41, 45, 47, 66, 67, 69, 80, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1010, 1011,
			1015, 1016, 1034, 1035, 1036, 1039, 1042, 1045, 1047, 1048, 1049, 1070, 2004, 2026, 2027, 8452} {
			t[mode] = true
		}
		return t
	}()
)

func finals(all string) (t [256]bool) {
	for i := range len(all) {
		t[all[i]] = true
	}
	return t
}

// prefixIndex is the index in controls of the first byte behind CSI.
func prefixIndex(c byte) int {
	if c >= '<' && c <= '?' {
		return int(c-'<') + 1
	}
	return 0
}

func listed(in map[byte]string, inter, final byte) bool {
	return strings.IndexByte(in[inter], final) >= 0
}

// allowedEscape reports whether an escape sequence is listed: inter is its first
// intermediate byte, 0 if it has none.
func allowedEscape(inter, final byte) bool {
	switch {
	case inter == 0:
		return strings.IndexByte(escapes7, final) >= 0
	case inter >= '(' && inter <= '/': // a character set
		return true
	}
	return listed(escapeInter, inter, final)
}
