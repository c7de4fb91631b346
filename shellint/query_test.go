package shellint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/shellint"
)

var queryCases = []struct {
	raw  string
	want shellint.Query // 0: plain
}{
	{"\x1b[5n", shellint.QueryStatus},
	{"\x1b[6n", shellint.QueryCursor},
	{"\x1b[?6n", shellint.QueryCursor},
	{"\x1b[?996n", shellint.QueryDevice},
	{"\x1b[?15n", shellint.QueryDevice},
	{"\x1b[0n", 0},  // an answer
	{"\x1b[>4n", 0}, // sets a key mode
	{"\x1b[c", shellint.QueryDA1},
	{"\x1b[0c", shellint.QueryDA1},
	{"\x1b[?62;4c", 0}, // an answer; also the Linux console's cursor shape
	{"\x1b[>c", shellint.QueryDA2},
	{"\x1b[>0;276;0c", shellint.QueryDA2},
	{"\x1b[=c", shellint.QueryDA3},
	{"\x1b[>q", shellint.QueryVersion},
	{"\x1b[>0q", shellint.QueryVersion},
	{"\x1b[2 q", 0}, // cursor shape
	{"\x1b[?2026$p", shellint.QueryMode},
	{"\x1b[4$p", shellint.QueryMode},
	{"\x1b[!p", 0}, // soft reset
	{"\x1b[14t", shellint.QueryWindow},
	{"\x1b[18t", shellint.QueryWindow},
	{"\x1b[21t", shellint.QueryWindow},
	{"\x1b[22;0t", 0}, // push the title
	{"\x1b[8;24;80t", 0},
	{"\x1b[?u", shellint.QueryKeyboard},
	{"\x1b[>1u", 0},
	{"\x1b[u", 0}, // restore the cursor
	{"\x1b[?4m", shellint.QueryOther},
	{"\x1b[?1;1;0S", shellint.QueryOther},
	{"\x1b[31m", 0},
	{"\x1b[?25h", 0},
	{"\x1b[99999999999999999999n", shellint.QueryDevice},
	{"\x1b[6\n\x7fn", shellint.QueryCursor},
	{"\x1b[6?n", 0},
	{"\x1b[6 n", 0},
	{"\u009b6n", shellint.QueryCursor},
	{"\x1bP$qm\x1b\\", shellint.QuerySetting},
	{"\x1bP+q544e\x1b\\", shellint.QueryTermcap},
	{"\u0090$qm\u009c", shellint.QuerySetting},
	{"\x1bP1$r0m\x1b\\", 0}, // an answer
	{"\x1bPq#0\x1b\\", 0},   // a picture
	{"\x05", shellint.QueryAnswerback},
}

// TestQueries checks which sequences make a terminal answer.
func TestQueries(t *testing.T) {
	for _, tt := range queryCases {
		t.Run(tt.raw, func(t *testing.T) {
			res := scanBoth(t, "a"+tt.raw+"b", shellint.Options{})
			var want []shellint.Span
			var got shellint.Query
			if tt.want != 0 {
				want = []shellint.Span{{Start: 1, End: 1 + int64(len(tt.raw)), Class: shellint.ClassQuery}}
			}
			if len(res.marks) > 0 {
				got = res.marks[0].Query
			}
			if diff := cmp.Diff(want, res.spans); diff != "" || got != tt.want {
				t.Errorf("query %d, want %d; spans (-want +got):\n%s", got, tt.want, diff)
			}
		})
	}
}

// TestQueriesInContext checks queries next to unfinished output.
func TestQueriesInContext(t *testing.T) {
	tests := []struct{ name, raw, want string }{
		{"after a lone ESC", "\x1b\x1b[6n]633;A\a", "\x1b\x1b\\]633;A\a"},
		{"after ESC and a control", "\x1b\n[6nx", "\x1b\n\x1b\\x"},
		{"in a title that it ends", "\x1b]0;t\x1b[6nx", "\x1b]0;t\x1b\\x"},
		{"answerback in a character", "\xc2\x05\x9d633;A\a", "\xc2\x1b\\\x9d633;A\a"},
		{"answerback in a string", "\x1b]8;;u\x05v\a", "\x1b]8;;u\x05v\a"},
		{"answerback in a sequence", "\x1b[3\x051m", "\x1b[3\x051m"},
		{"unfinished", "\x1b[6", "\x1b[6"},
		{"a setting cut off", "a\x1bP$qm", "a"},
		{"BEL does not end a DCS", "\x1bP$q\am\x1b\\x", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := scanBoth(t, tt.raw, shellint.Options{})
			if got := string(res.without(shellint.ClassQuery)); got != tt.want {
				t.Errorf("%q without queries is %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}
