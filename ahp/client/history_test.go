package client_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/ahp/client"
)

// actions turns fuzzed bytes into actions of a terminal.
func actions(program []byte) (out []ahp.Action) {
	texts := []string{"", "x", "line\r\n", "端末🖥", strings.Repeat("é", 50)}
	for i, b := range program {
		id := fmt.Sprint(b >> 5)
		switch b % 5 {
		case 0:
			out = append(out, ahp.TerminalCommandExecuted{CommandID: id, CommandLine: strings.Repeat("m", int(b)), Timestamp: int64(i)})
		case 1:
			out = append(out, ahp.TerminalCommandFinished{CommandID: id, ExitCode: new(int64(b))})
		case 2:
			if b > 240 {
				out = append(out, ahp.TerminalCleared{})
			}
		default:
			out = append(out, ahp.TerminalData{Data: texts[int(b)/5%len(texts)]})
		}
	}
	return out
}

// FuzzHistory: without a limit, the history equals the reducer's result. With a limit, it
// is the longest tail of that result within the limit.
func FuzzHistory(f *testing.F) {
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz"), uint16(300))
	f.Add([]byte{0, 3, 8, 13, 18, 23, 1, 3, 0, 5, 10, 242}, uint16(100))
	f.Fuzz(func(t *testing.T, program []byte, limit uint16) {
		if len(program) > 2000 {
			return
		}
		all, some := client.NewHistory(1<<30), client.NewHistory(int(limit))
		var want ahp.TerminalState
		for _, a := range actions(program) {
			want = ahp.ReduceTerminal(want, a)
			all.Apply(a)
			some.Apply(a)
			if counted, real := some.Size(); counted != real {
				t.Fatalf("the size is counted as %d and is %d", counted, real)
			}
		}
		if diff := cmp.Diff(append([]ahp.ContentPart{}, want.Content...), all.Content()); diff != "" {
			t.Fatalf("without a limit (-reducer +history):\n%s", diff)
		}
		checkTail(t, want.Content, some, int(limit))
	})
}

func checkTail(t *testing.T, full []ahp.ContentPart, some *client.History, limit int) {
	t.Helper()
	tail := some.Content()
	if len(tail) == 0 {
		if len(full) != 0 {
			t.Errorf("nothing is left of %d parts", len(full))
		}
		return
	}
	first, rest := tail[0], tail[1:]
	full = full[len(full)-len(tail):]
	if diff := cmp.Diff(full[1:], rest, cmp.Transformer("empty", func(p []ahp.ContentPart) []ahp.ContentPart {
		return append([]ahp.ContentPart{}, p...)
	})); diff != "" {
		t.Errorf("all but the first part (-want +got):\n%s", diff)
	}
	if !strings.HasSuffix(full[0].Text(), first.Text()) || !utf8.ValidString(first.Text()) {
		t.Errorf("%q is no tail of %q", first.Text(), full[0].Text())
	}
	// A first part whose text is cut to nothing still has its line.
	if size, _ := some.Size(); size > limit && first.Text() != "" {
		t.Errorf("%d bytes are kept, at most %d", size, limit)
	}
}

// A stream of output in small pieces keeps a tail of the exact length, and its buffer
// stays small.
func TestHistoryOfAStream(t *testing.T) {
	h := client.NewHistory(10_000)
	var full strings.Builder
	for i := range 20_000 {
		s := fmt.Sprintf("%d é\r\n", i)
		full.WriteString(s)
		h.Apply(ahp.TerminalData{Data: s})
	}
	got := h.Content()[0].Value
	if !strings.HasSuffix(full.String(), got) || len(got) > 10_000 || len(got) < 9_900 {
		t.Errorf("%d bytes are kept: %q…", len(got), got[:20])
	}
}

// A snapshot beyond all limits is kept within our limits.
func TestHistoryOfAHostileSnapshot(t *testing.T) {
	h := client.NewHistory(1000)
	big := strings.Repeat("端", 100_000)
	h.Load([]ahp.ContentPart{
		{Type: "future", Raw: []byte(`"` + big + `"`)},
		{Type: ahp.PartCommand, CommandID: big, CommandLine: big, Output: big},
	})
	p := h.Content()
	if len(p) != 1 || len(p[0].CommandLine) > ahp.MaxCommandLine || len(p[0].CommandID) > ahp.MaxCommandID ||
		!utf8.ValidString(p[0].CommandLine) || p[0].Output != "" {
		t.Errorf("%d parts, line %d, id %d, output %d bytes", len(p), len(p[0].CommandLine), len(p[0].CommandID), len(p[0].Output))
	}
}
