package shellint

// introducer is the verdict on the bytes at the start of a sequence.
type introducer struct {
	verdict verdict
	n       int   // bytes of the introducer; for a foreign one, bytes to skip before looking for the next
	class   Class // of the sequence; 0: it has a Mark but no Span
	ps      int32 // OSC number, -1 for a DCS or CSI
	query   Query
	dcs     bool // the sequence is a DCS, which BEL does not end
	whole   bool // the introducer is the whole sequence
	doomed  bool // there will be no Mark
	ours    bool // with undecided: if the stream ends here, these bytes are an OSC 133 or 633
}

type verdict uint8

const (
	undecided  verdict = iota // too short to tell
	foreign                   // plain output
	known                     // a sequence with a class begins
	answerback                // ENQ
)

// atEOF returns the verdict on an undecided introducer if the stream ends after its n
// bytes.
func (in introducer) atEOF(n int) introducer {
	in.verdict, in.n = foreign, n
	if in.ours {
		in.verdict = known
	}
	return in
}

// state returns the state in which an unfinished sequence of this kind leaves the
// terminal.
func (in introducer) state() state {
	if in.dcs {
		return inString
	}
	return inOSC
}

// parseIntroducer judges b, which begins where the finder stopped: at an ESC, at the
// first byte of a C1 control, or at an ENQ. If inert bytes follow an ESC, b begins at the
// byte after them, which completes the ESC; the ESC and the inert bytes stay plain
// output. The verdict depends on at most MaxUndecided bytes, so that the division of the
// stream into calls makes no difference.
func parseIntroducer(b []byte) introducer {
	b = b[:min(len(b), MaxUndecided)]
	if b[0] == enq {
		return introducer{verdict: answerback}
	}
	kind, n := b[0], 1
	if kind == esc || kind == c1 {
		if len(b) == 1 {
			return introducer{}
		}
		kind, n = b[1], 2
		if b[0] == c1 {
			kind = sevenBit(kind)
		}
	}
	in := introducer{verdict: foreign}
	switch kind {
	case ']':
		in = parseOSC(b, n)
	case '[':
		in = parseCSI(b, n)
	case 'P':
		in = parseDCS(b, n)
	case 'Z': // DECID
		return introducer{verdict: known, n: n, class: ClassQuery, ps: -1, query: QueryDA1, whole: true}
	}
	if in.verdict == undecided && len(b) == MaxUndecided && !in.doomed {
		in.verdict = foreign
	}
	switch {
	case in.verdict == foreign:
		in.n = n
	case in.doomed:
		in.verdict, in.n = known, len(b)
	}
	return in
}

// sevenBit returns the byte that, after an ESC, means the same as the C1 control with the
// second byte b.
func sevenBit(b byte) byte { return b - 0x40 }

// parseOSC judges an OSC whose number begins at b[n].
func parseOSC(b []byte, n int) introducer {
	number, digits := 0, 0
	for ; n < len(b); n++ {
		c := b[n]
		switch {
		case c >= '0' && c <= '9':
			number, digits = number*10+int(c-'0'), digits+1
			if !knownPrefix(number) {
				return introducer{verdict: foreign}
			}
			continue
		case c == ';' && digits > 0:
			return parsePayload(b, n+1, number)
		}
		_, term := terminator(b[n:], false)
		switch {
		case term == termUndecided && c != esc:
			return introducer{class: ClassMark, doomed: len(b) == MaxUndecided && ours(number)}
		case term != termNone:
			return bareOSC(n, number)
		case c >= 0x20:
			return introducer{verdict: foreign}
		}
	}
	return introducer{class: ClassMark, ours: ours(number), doomed: len(b) == MaxUndecided && mayBeOurs(number)}
}

// bareOSC judges an OSC that ends at b[n] without a ";".
func bareOSC(n, number int) introducer {
	if !ours(number) {
		return introducer{verdict: foreign}
	}
	return introducer{verdict: known, n: n, class: ClassMark, ps: int32(number)}
}

func ours(number int) bool { return number == 133 || number == 633 }

// mayBeOurs reports whether number is 133 or 633, or more digits can make it so.
func mayBeOurs(number int) bool {
	switch number {
	case 0, 1, 13, 133, 6, 63, 633:
		return true
	}
	return false
}

// knownPrefix reports whether number is, or begins, the number of an OSC that
// parsePayload knows.
func knownPrefix(number int) bool {
	switch number {
	case 30, 300, 3008, 52, 1337, 21, 22, 99, 55, 552, 5522:
		return true
	}
	return number < 20 && number != 8 || mayBeOurs(number)
}

// parsePayload judges an OSC by its number and its payload, which begins at b[n].
func parsePayload(b []byte, n, number int) introducer {
	in := introducer{verdict: known, n: n, ps: int32(number)}
	switch number {
	case 133, 633:
		in.class = ClassMark
	case 0, 1, 2:
		in.class = ClassTitle
	case 7, 3008:
		in.class = ClassReport
	case 52:
		in.class = ClassClipboard
	case 9:
		in.class, in.verdict = noticeClass(b[n:])
	case 1337:
		in.class, in.verdict = itermClass(b[n:])
	case 4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19:
		in.class, in.query = ClassQuery, QueryColour
		in.verdict = colourVerdict(b[n:])
	case 21, 22, 99, 5522: // kitty's colours, pointer, notifications and clipboard, all of which may be queries
		in.class, in.query = ClassQuery, QueryOther
	default:
		in.verdict = foreign
	}
	return in
}

// plainPayload copies the part of an OSC payload that lies in b to dst without C0 bytes.
// ended reports whether the payload ends in b.
func plainPayload(dst, b []byte) (payload []byte, ended bool) {
	for i, c := range b {
		if c < 0x20 || c == c1 {
			switch _, term := terminator(b[i:], false); {
			case term == termUndecided && c == c1:
				return dst, false
			case term != termNone:
				return dst, true
			case c < 0x20:
				continue
			}
		}
		dst = append(dst, c)
	}
	return dst, false
}

// noticeClass distinguishes the reports of ConEmu, 9;9 (directory) and 9;12 (prompt),
// from progress and notifications, which have no class.
func noticeClass(b []byte) (Class, verdict) {
	var buf [MaxUndecided]byte
	p, ended := plainPayload(buf[:0], b)
	field, _, more := cutField(p)
	if ended || more {
		if s := string(field); s == "9" || s == "12" {
			return ClassReport, known
		}
		return 0, known
	}
	if s := string(field); s == "" || s == "9" || s == "1" || s == "12" {
		return 0, undecided
	}
	return 0, known
}

// itermReports are the beginnings of the payloads of OSC 1337 that report state.
var itermReports = [...]string{"CurrentDir=", "RemoteHost=", "ShellIntegrationVersion=", "SetMark;"}

// itermClass distinguishes the reports of iTerm2's OSC 1337 from files and other
// requests, which are foreign.
func itermClass(b []byte) (Class, verdict) {
	var buf [MaxUndecided]byte
	p, ended := plainPayload(buf[:0], b)
	if ended && string(p) == "SetMark" {
		return ClassReport, known
	}
	v := foreign
	for _, report := range itermReports {
		n := min(len(p), len(report))
		switch {
		case string(p[:n]) != report[:n]:
		case n == len(report):
			return ClassReport, known
		case !ended:
			v = undecided
		}
	}
	return 0, v
}

// colourVerdict looks for a field "?" in the payload of a colour OSC: with one it is a
// query, without one it sets.
func colourVerdict(b []byte) verdict {
	var buf [MaxUndecided]byte
	p, ended := plainPayload(buf[:0], b)
	for {
		field, rest, more := cutField(p)
		if string(field) == "?" && (more || ended) {
			return known
		}
		if !more {
			break
		}
		p = rest
	}
	if ended {
		return foreign
	}
	return undecided
}
