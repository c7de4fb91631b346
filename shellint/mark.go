package shellint

import (
	"bytes"
	"strconv"
	"strings"
)

// Mark is one complete sequence and its meaning. Its exported fields stay valid. Its
// methods read the payload, which is not copied: they may be called until the next call
// of the Scanner, or until the bytes given to Scan change.
type Mark struct {
	Off, End int64 // raw offsets of the sequence: its first byte, and the byte after its terminator

	// Text is the decoded text, if HasText: the command line (KindLine, KindOutputStart),
	// the value (KindProperty), the directory as a path without scheme and host
	// (KindCwd), the title (KindTitle), user@host (KindHost). The program may have sent
	// invalid UTF-8.
	Text string
	// Key is the property's name (KindProperty, KindSize, KindGap, and KindCwd from OSC
	// 633 P) or the selection (KindClipboard), else "".
	Key string
	// Host is the host part of an OSC 7 report, else "". The caller must not use a
	// directory of another host.
	Host string

	// Exit is the exit code of KindCommandEnd.
	Exit Exit

	PS    int32 // number of the OSC; -1 for queries that are no OSC
	Kind  Kind
	Term  Terminator
	Query Query // the requested information, for KindQuery

	// Trusted says that the mark carries Options.Nonce, or that no nonce is configured.
	Trusted bool
	// HasText says that the sequence had a text, which may be empty.
	HasText bool
	// Truncated says that only the beginning of the payload was kept, see [MaxText]. Text
	// is then the beginning of the text.
	Truncated bool
	// Read says that a KindClipboard asks for the clipboard; otherwise it sets the
	// clipboard.
	Read bool

	payload []byte
}

// Exit is a command's exit code, if it is known.
type Exit struct {
	Code  int64 // as the shell reported it; Windows codes reach 4294967295, and most shells report 128+signal for a killed process
	Known bool
}

// Kind is the meaning of a Mark.
type Kind uint8

// The kinds of marks. The first group is OSC 133 and 633, the second everything else.
const (
	KindOther       Kind = iota // 133 or 633 with a verb that does not concern commands; see Mark.Verb
	KindPromptStart             // A; 133;N; 133;P with k=i or without k
	KindPromptEnd               // B; 133;I
	KindLine                    // 633;E: the command line
	KindOutputStart             // C: the command's output starts
	KindCommandEnd              // D: the command ended
	KindProperty                // 633;P;Key=Value
	KindSize                    // 633;P;Size=COLSxROWS;NONCE: the terminal's size from here on, see Mark.Size
	KindGap                     // 633;P;Gap=unknown;NONCE: output is missing here, nobody knows how much

	KindCwd       // working directory: 633;P;Cwd=, OSC 7, 9;9, 1337;CurrentDir=
	KindTitle     // OSC 0, 1, 2
	KindHost      // 1337;RemoteHost=
	KindReport    // 9;12, 1337;ShellIntegrationVersion=, 1337;SetMark, 3008: see Mark.Payload
	KindNotice    // OSC 9 with anything else (a notification, or 9;4 progress); it has no Span, the bytes are plain
	KindClipboard // OSC 52
	KindQuery     // a terminal answers it; see Mark.Query
)

// Terminator is the way in which a sequence ended.
type Terminator uint8

// The terminators of sequences that count. A cancelled sequence is no mark.
const (
	TermBEL   Terminator = iota + 1
	TermST               // ESC \
	TermC1ST             // U+009C
	TermESC              // an ESC that begins something else and is not part of the sequence
	TermEOF              // end of the stream; an OSC 133 or 633 that ends so is no mark
	TermFinal            // the final byte of a control or escape sequence, or ENQ itself
)

// Query is the information that a query requests.
type Query uint8

// The queries.
const (
	QueryOther      Query = iota + 1
	QueryStatus           // CSI 5 n
	QueryCursor           // CSI 6 n, CSI ? 6 n
	QueryDevice           // CSI ? n n and CSI n n with other numbers
	QueryDA1              // CSI c
	QueryDA2              // CSI > c
	QueryDA3              // CSI = c
	QueryVersion          // CSI > q (XTVERSION)
	QueryMode             // CSI … $ p (DECRQM)
	QueryWindow           // CSI 11, 13 to 16, 18 to 21 t (XTWINOPS)
	QueryKeyboard         // CSI ? u (kitty keyboard)
	QuerySetting          // DCS $ q (DECRQSS)
	QueryTermcap          // DCS + q (XTGETTCAP)
	QueryColour           // OSC 4, 5, 10 to 19 with ?
	QueryAnswerback       // ENQ
)

// Payload returns the text of an OSC after its number and ";", or of a DCS query after
// its final byte, without C0 bytes. The caller must not change it.
func (m *Mark) Payload() []byte { return m.payload }

// Clone returns a copy of m whose methods stay valid.
func (m *Mark) Clone() Mark {
	c := *m
	c.payload = bytes.Clone(m.payload)
	return c
}

// integration reports whether m is an OSC 133 or 633.
func (m *Mark) integration() bool { return m.PS == 133 || m.PS == 633 }

// Verb returns the first field of an OSC 133 or 633, such as "A" or "SetMark". It returns
// "" for other sequences.
func (m *Mark) Verb() string {
	if !m.integration() {
		return ""
	}
	verb, _, _ := cutField(m.payload)
	return string(verb)
}

// maxSize bounds a dimension of a terminal, in cells, as package screen does.
const maxSize = 1000

// Size returns the columns and rows of a KindSize, each 1 to 1000.
func (m *Mark) Size() (cols, rows int) {
	cols, rows, _ = parseSize(m.Text)
	return cols, rows
}

func parseSize(text string) (cols, rows int, ok bool) {
	before, after, _ := strings.Cut(text, "x")
	cols, err := strconv.Atoi(before)
	rows, err2 := strconv.Atoi(after)
	return cols, rows, err == nil && err2 == nil && min(cols, rows) >= 1 && max(cols, rows) <= maxSize
}

// Args returns the raw fields, separated by ";": of an OSC 133 or 633 those after the
// verb, of another OSC all.
func (m *Mark) Args() []string {
	rest, more := m.payload, true
	if m.integration() {
		_, rest, more = cutField(rest)
	}
	var args []string
	var field []byte
	for more {
		field, rest, more = cutField(rest)
		args = append(args, string(field))
	}
	return args
}

// Opt returns the raw value of the last option key=value among the fields of an OSC 133;
// false if there is none.
func (m *Mark) Opt(key string) (string, bool) {
	if m.PS != 133 {
		return "", false
	}
	value, _, ok := lastOption(m.payload, key)
	return string(value), ok
}
