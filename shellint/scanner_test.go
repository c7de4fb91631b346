package shellint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/internal/testkit/check"
	"tether/shellint"
)

// scanBoth scans a stream byte by byte and in one piece, which must agree.
func scanBoth(t *testing.T, raw string, o shellint.Options) *result {
	t.Helper()
	whole := scanPieces(t, []byte(raw), o, nil)
	if got := scanPieces(t, []byte(raw), o, bytePieces(len(raw))); !got.same(whole) {
		t.Fatalf("%q byte by byte (-whole +pieces):\n%s", raw, cmp.Diff(whole.String(), got.String()))
	}
	return whole
}

// long is more than the payload limit of markCases, 100 bytes.
var long = strings.Repeat("x", 200)

var markCases = []struct {
	name, raw, clean string
	marks            string // verbs, and exit codes
}{
	{"split introducer and terminator", "a\x1b]633;D;0\x1b\\b", "ab", "D=0"},
	{"ESC and something else end it", "a\x1b]633;D;0\x1b[31mb", "a\x1b[31mb", "D=0"},
	{"cancelled by CAN", "a\x1b]633;D;0\x18b", "a\x18b", ""},
	{"cancelled by SUB", "a\x1b]633;D;0\x1ab", "a\x1ab", ""},
	{"cancelled by a C1", "a\x1b]633;D;0\u0085b", "a\u0085b", ""},
	{"cut off", "a\x1b]633;D;0", "a", ""},
	{"cut off after ESC", "a\x1b]633;D;0\x1b", "a", ""},
	{"cut off in the number", "a\x1b]63", "a\x1b]63", ""},
	{"cut off after the number", "a\x1b]633", "a", ""},
	{"no payload", "a\x1b]633\ab", "ab", ""},
	{"U+009C ends it", "\x1b]133;D;1\u009cb", "b", "D=1"},
	{"a lone 9C is data", "\x1b]633;E;a\x9cb\ac", "c", "E"},
	{"C0 in the payload is dropped", "\x1b]633;D;\n1\x003\ab", "b", "D=13"},
	{"leading zeros", "\x1b]000633;A\ab", "b", "A"},
	{"C0 in the number", "\x1b]6\n33;A\ab", "b", "A"},
	{"C0 before the bracket", "\x1b\n]633;A\ab", "\x1b\n\x1b\\b", "A"},
	{"U+009D", "a\u009d633;A\ab", "ab", "A"},
	{"a raw 9D is no control", "a\x9d633;A\ab", "a\x9d633;A\ab", ""},
	{"look-alikes", "\x1b]6330;A\a\x1b];633;A\a\x1b]+633;A\a\x1b]6\x7f33;A\a", "\x1b]6330;A\a\x1b];633;A\a\x1b]+633;A\a\x1b]6\x7f33;A\a", ""},
	{"longer than the limit", "\x1b]633;E;" + long + "\ab\x1b]633;A\a", "b", "A"},
	{"an introducer too long to wait for", "\x1b]" + strings.Repeat("0", 100) + "633;A\ab", "b", ""},
	{"smuggled by a lone ESC", "\x1b\x1b]633;A\a]633;D;0\a", "\x1b\x1b\\]633;D;0\a", "A"},
	{"smuggled by two marks", "\x1b\x1b]633;A\a\x1b]633;B\a]633;D;0\a", "\x1b\x1b\\]633;D;0\a", "A B"},
	{"smuggled by a cut character", "\xc2\x1b]633;A\a\x9d633;D;0\a", "\xc2\x1b\\\x9d633;D;0\a", "A"},
	{"inside a CSI", "\x1b[3\x1b]633;A\a1m", "\x1b[3\x1b\\1m", "A"},
	{"inside an escape", "\x1b(\x1b]633;A\a0", "\x1b(\x1b\\0", "A"},
	{"inside a title", "\x1b]0;t\x1b]633;A\a\a", "\x1b]0;t\x1b\\\a", "A"},
	{"inside a DCS", "\x1bPq#0\x1b]633;A\a~\x1b\\", "\x1bPq#0\x1b\\~\x1b\\", "A"},
	{"after a finished sequence", "\x1b[31m\x1b]633;A\ab", "\x1b[31mb", "A"},
	{"after a cancelled string", "\x1bPq\x18\x1b]633;A\ab", "\x1bPq\x18b", "A"},
	{"inside an APC opened by a C1", "\u009fG\x1b]633;A\ab", "\u009fG\x1b\\b", "A"},
	{"unterminated foreign OSC", "\x1b]8;;u" + long + "\x1b]633;A\ab", "\x1b]8;;u" + long + "\x1b\\b", "A"},
	{"exit codes", "\x1b]633;D;-1\a\x1b]633;D;\a\x1b]633;D;1x\a\x1b]633;D;-\a\x1b]633;D;99999999999999999999\a", "", "D=-1 D D D D"},
}

// TestMarksTakenOut shows the stream that observers get when it has marks, and the
// content of the marks.
func TestMarksTakenOut(t *testing.T) {
	for _, tt := range markCases {
		t.Run(tt.name, func(t *testing.T) {
			res := scanBoth(t, tt.raw, shellint.Options{LimitPayload: 100})
			if got := string(res.without(shellint.ClassMark)); got != tt.clean {
				t.Errorf("%q: clean is %q, want %q", tt.raw, got, tt.clean)
			}
			var verbs []string
			for _, m := range res.marks {
				switch {
				case m.Verb() == "":
				case m.Exit.Known:
					verbs = append(verbs, fmt.Sprintf("%s=%d", m.Verb(), m.Exit.Code))
				default:
					verbs = append(verbs, m.Verb())
				}
			}
			if got := strings.Join(verbs, " "); got != tt.marks {
				t.Errorf("%q: marks %q, want %q", tt.raw, got, tt.marks)
			}
		})
	}
}

// TestLimitPayload checks the default limit at its edge.
func TestLimitPayload(t *testing.T) {
	line := strings.Repeat("y", shellint.DefaultLimitPayload-len("E;"))
	raw := "\x1b]633;E;" + line + "\a1\x1b]633;E;" + line + "z\a2\x1b]633;A\a3"
	for _, sizes := range [][]int{nil, {100, len(raw) - 100}, {len(raw) - 20, 20}} {
		res := scanPieces(t, []byte(raw), shellint.Options{}, sizes)
		if got := string(res.without(shellint.ClassMark)); got != "123" {
			t.Errorf("clean is %.100q", got)
		}
		if len(res.marks) != 2 || res.marks[0].Text != line || res.marks[1].Kind != shellint.KindPromptStart {
			t.Errorf("%d marks", len(res.marks))
		}
	}
}

// TestOtherSequences checks the class and the content of sequences that are not marks.
func TestOtherSequences(t *testing.T) {
	const (
		report, title, clipboard, query = shellint.ClassReport, shellint.ClassTitle, shellint.ClassClipboard, shellint.ClassQuery
	)
	tests := []struct {
		raw   string
		class shellint.Class // 0: plain
		want  shellint.Mark  // without offsets and terminator; zero: no mark
	}{
		{"\x1b]0;both\a", title, shellint.Mark{Kind: shellint.KindTitle, PS: 0, Text: "both", HasText: true}},
		{"\x1b]2;“w”\x1b\\", title, shellint.Mark{Kind: shellint.KindTitle, PS: 2, Text: "“w”", HasText: true}},
		{"\x1b]7;file://h/a%20b%\a", report, shellint.Mark{Kind: shellint.KindCwd, PS: 7, Text: "/a b%", HasText: true, Host: "h"}},
		{"\x1b]7;kitty-shell-cwd://h/a%20b\a", report, shellint.Mark{Kind: shellint.KindCwd, PS: 7, Text: "/a%20b", HasText: true, Host: "h"}},
		{"\x1b]7;http://h/a\a", report, shellint.Mark{Kind: shellint.KindReport, PS: 7}},
		{"\x1b]7;/a\a", report, shellint.Mark{Kind: shellint.KindReport, PS: 7}},
		{"\x1b]9;9;\"C:\\a;b\"\a", report, shellint.Mark{Kind: shellint.KindCwd, PS: 9, Text: `C:\a;b`, HasText: true}},
		{"\x1b]9;12\a", report, shellint.Mark{Kind: shellint.KindReport, PS: 9}},
		{"\x1b]9;4;1;50\a", 0, shellint.Mark{Kind: shellint.KindNotice, PS: 9}},
		{"\x1b]9;123\a", 0, shellint.Mark{Kind: shellint.KindNotice, PS: 9}},
		{"\x1b]1337;CurrentDir=/x\a", report, shellint.Mark{Kind: shellint.KindCwd, PS: 1337, Text: "/x", HasText: true}},
		{"\x1b]1337;RemoteHost=u@h\a", report, shellint.Mark{Kind: shellint.KindHost, PS: 1337, Text: "u@h", HasText: true}},
		{"\x1b]1337;SetMark\a", report, shellint.Mark{Kind: shellint.KindReport, PS: 1337}},
		{"\x1b]1337;SetMarker\a", 0, shellint.Mark{}},
		{"\x1b]1337;File=name=eA==:AAAA\a", 0, shellint.Mark{}},
		{"\x1b]3008;start=a;cwd=/x\x1b\\", report, shellint.Mark{Kind: shellint.KindReport, PS: 3008}},
		{"\x1b]52;c;aGk=\a", clipboard, shellint.Mark{Kind: shellint.KindClipboard, PS: 52, Key: "c"}},
		{"\x1b]52;p;?\a", clipboard, shellint.Mark{Kind: shellint.KindClipboard, PS: 52, Key: "p", Read: true}},
		{"\x1b]11;?\x1b\\", query, shellint.Mark{Kind: shellint.KindQuery, PS: 11, Query: shellint.QueryColour}},
		{"\x1b]4;7;?\a", query, shellint.Mark{Kind: shellint.KindQuery, PS: 4, Query: shellint.QueryColour}},
		{"\x1b]10;red;?\a", query, shellint.Mark{Kind: shellint.KindQuery, PS: 10, Query: shellint.QueryColour}},
		{"\x1b]4;7;#ff0000\a", 0, shellint.Mark{}},
		{"\x1b]104\a", 0, shellint.Mark{}},
		{"\x1b]0\a", 0, shellint.Mark{}},
		{"\x1b]8;;http://x/?\a", 0, shellint.Mark{}},
		{"\x1b]777;notify;a;b\a", 0, shellint.Mark{}},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			res := scanBoth(t, "a"+tt.raw+"b", shellint.Options{Nonce: "n"})
			var want []shellint.Span
			if tt.class != 0 {
				want = []shellint.Span{{Start: 1, End: 1 + int64(len(tt.raw)), Class: tt.class}}
			}
			check.Equal(t, "spans", want, res.spans)
			if len(res.marks) == 0 {
				res.marks = []shellint.Mark{{}}
			}
			got := res.marks[0]
			tt.want.Off, tt.want.End, tt.want.Term = got.Off, got.End, got.Term
			if !sameMark(got, tt.want) && !(len(got.Payload()) > 0 && sameButPayload(got, tt.want)) {
				t.Errorf("mark %+v, want %+v", got, tt.want)
			}
		})
	}
}

func sameButPayload(a, b shellint.Mark) bool {
	return cmp.Equal(a, b, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "payload" }, cmp.Ignore()))
}

// TestLongSequences checks that long sequences pass without delay and are kept only in
// part.
func TestLongSequences(t *testing.T) {
	data := strings.Repeat("A", 100_000)
	raw := []byte("\x1b]52;c;" + data + "\a\x1b]2;" + data + "\a\x1b]7;file://h/" + data + "\a\x1b]8;;" + data)
	res := scanPieces(t, raw, shellint.Options{}, randomSizes(len(raw), 4095))
	if len(res.marks) != 3 {
		t.Fatalf("%d marks", len(res.marks))
	}
	clip, title, cwd := res.marks[0], res.marks[1], res.marks[2]
	if clip.Key != "c" || clip.Read || !clip.Truncated || len(clip.Payload()) > 100 {
		t.Errorf("clipboard: %d bytes of payload, %+v", len(clip.Payload()), clip.Key)
	}
	if !title.Truncated || title.Text != data[:shellint.MaxText] {
		t.Errorf("title: %d bytes", len(title.Text))
	}
	if cwd.Kind != shellint.KindReport || cwd.HasText {
		t.Errorf("a cut directory is no directory: kind %d", cwd.Kind)
	}
}

func randomSizes(n, size int) []int {
	var sizes []int
	for ; n > size; n -= size {
		sizes = append(sizes, size)
	}
	return append(sizes, n)
}

// TestNothingHeldBack checks that plain output and foreign sequences are decided at once.
func TestNothingHeldBack(t *testing.T) {
	tests := []struct {
		raw       string
		undecided int
	}{
		{"plain", 0},
		{"\x1b", 1},
		{"\x1b]", 2},
		{"\x1b]63", 4},
		{"\x1b]633", 5},
		{"\x1b]633;E;ls", 0},
		{"\x1b]633;E;ls\x1b", 1},
		{"\x1b]0;title", 0},
		{"\x1b]0;title\xc2", 1},
		{"\x1b]8", 0},
		{"\x1b]52;c;AAAA", 0},
		{"\x1b]1337;Curr", 11},
		{"\x1b]4;1;rgb:00/00", 15},
		{"\x1b\n", 0},
		{"\x1b\n]63", 3},
		{"a\xc2", 1},
		{"a\xe2\x9c", 0},
		{"\x1b[6", 3},
		{"\x1b[31m", 0},
	}
	for _, tt := range tests {
		s := shellint.NewScanner(shellint.Options{})
		var r shellint.Result
		s.Scan([]byte(tt.raw), &r)
		if got := len(tt.raw) - int(r.Decided); got != tt.undecided {
			t.Errorf("%q: %d bytes undecided, want %d", tt.raw, got, tt.undecided)
		}
	}
}

// TestNoAllocations checks that reads without marks allocate nothing.
func TestNoAllocations(t *testing.T) {
	for _, c := range corpora {
		if c.name == "marks" {
			continue
		}
		data := c.generate(64 << 10)
		s := shellint.NewScanner(shellint.Options{})
		var r shellint.Result
		if n := testing.AllocsPerRun(20, func() { s.Scan(data, &r) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// TestBoundedMemory checks that neither endless sequences nor long lines make a Scanner
// grow for good.
func TestBoundedMemory(t *testing.T) {
	piece := []byte(strings.Repeat("z", 32<<10))
	for _, open := range []string{"\x1b]633;E;", "\x1b]0;", "\x1b]52;c;", "\x1b]7;", "\x1b]4;1;", "\x1b]8;;", "\x1bP$q", "\x1b["} {
		s := shellint.NewScanner(shellint.Options{})
		var r shellint.Result
		s.Scan([]byte(open), &r)
		for range 100 {
			s.Scan(piece, &r)
			if got := s.Memory(); got > 2*shellint.DefaultLimitPayload {
				t.Fatalf("%q: %d bytes held", open, got)
			}
		}
		s.Scan([]byte("\a\x1b\\"), &r)
		if got := s.Memory(); got > shellint.MaxArena {
			t.Errorf("%q: %d bytes held after its end", open, got)
		}
	}
}
