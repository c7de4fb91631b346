package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/local"
	"tether/ahp"
)

func TestEscapes(t *testing.T) {
	for _, c := range []struct {
		typed, sent string
		did         escapeAction
		rest        string
	}{
		{"plain", "plain", escapeNone, ""},
		{"~.", "", escapeDetach, ""},
		{"~.after", "", escapeDetach, "after"},
		{"a~.", "a~.", escapeNone, ""},
		{"a\r~.", "a\r", escapeDetach, ""},
		{"a\n~?b", "a\n", escapeHelp, "b"},
		{"~~", "~", escapeNone, ""},
		{"~~.", "~.", escapeNone, ""},
		{"~x", "~x", escapeNone, ""},
		{"~\r~.", "~\r", escapeDetach, ""},
		{"~", "", escapeNone, ""},
		{"\r\r~.", "\r\r", escapeDetach, ""},
		{"\x1b[A~.", "\x1b[A~.", escapeNone, ""},
		{"ü\r~ü", "ü\r~ü", escapeNone, ""},
	} {
		var e escapes
		sent, did, rest := e.feed(nil, []byte(c.typed))
		if string(sent) != c.sent || did != c.did || string(rest) != c.rest {
			t.Errorf("%q: sent %q, did %d, rest %q; want %q, %d, %q", c.typed, sent, did, rest, c.sent, c.did, c.rest)
		}
	}
}

// everyKey feeds text key by key.
func everyKey(text []byte) (sent []byte, detached bool) {
	var e escapes
	for i := range text {
		var did escapeAction
		if sent, did, _ = e.feed(sent, text[i:i+1]); did == escapeDetach {
			return sent, true
		}
	}
	return sent, false
}

func FuzzEscapes(f *testing.F) {
	for _, s := range []string{"~.", "a\r~~b\r~?~.", "~x~\r~"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, typed []byte) {
		want, detached := everyKey(typed)
		var e escapes
		var sent []byte
		did := escapeNone
		for rest := typed; len(rest) > 0 && did != escapeDetach; {
			sent, did, rest = e.feed(sent, rest)
		}
		if string(sent) != string(want) || (did == escapeDetach) != detached {
			t.Errorf("%q at once: %q, %d; key by key: %q, %t", typed, sent, did, want, detached)
		}
		if len(sent) > len(typed) {
			t.Errorf("%q became more: %q", typed, sent)
		}
	})
}

func TestModes(t *testing.T) {
	for _, c := range []struct{ name, printed, want string }{
		{"nothing", "plain text", ""},
		{"alternate screen", "\x1b[?1049hx", "\x1b[?1049l"},
		{"left again", "\x1b[?1049hx\x1b[?1049l", ""},
		{"hidden cursor", "\x1b[?25l", "\x1b[?25h"},
		{"last first", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"},
		{"several at once", "\x1b[?1000;1006h", "\x1b[?1006l\x1b[?1000l"},
		{"twice", "\x1b[?2004h\x1b[?2004h", "\x1b[?2004l"},
		{"unknown mode", "\x1b[?777h", ""},
		{"not private", "\x1b[25l", ""},
		{"colour", "\x1b[31mred", "\x1b[0m"},
		{"colour reset", "\x1b[1;31mred\x1b[m", ""},
		{"colour reset in full", "\x1b[31mred\x1b[0m", ""},
		{"full reset", "\x1b[?1049h\x1b[31m\x1bc", ""},
		{"unfinished", "\x1b[?10", "\x18"},
		{"overlong", "\x1b[?" + strings.Repeat("1", 100) + "h", ""},
		{"interrupted", "\x1b[?\x1b[?25l", "\x1b[?25h"},
		{"other escape", "\x1b(B\x1b7", ""},
	} {
		var m modes
		for i := range len(c.printed) {
			m.Write([]byte{c.printed[i]})
		}
		if got := string(m.restore()); got != c.want {
			t.Errorf("%s, byte by byte: %q, want %q", c.name, got, c.want)
		}
		m.Write([]byte(c.printed))
		if got := string(m.restore()); got != c.want {
			t.Errorf("%s, at once: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[31mx\x1b[?25l"), 7)
	f.Fuzz(func(t *testing.T, printed []byte, at int) {
		var whole, parts modes
		whole.Write(printed)
		at = min(max(at, 0), len(printed))
		parts.Write(printed[:at])
		parts.Write(printed[at:])
		a, b := whole.restore(), parts.restore()
		if string(a) != string(b) {
			t.Errorf("%q split at %d: %q and %q", printed, at, a, b)
		}
		whole.Write(printed)
		whole.Write(a)
		if left := whole.restore(); len(left) > 0 {
			t.Errorf("%q put back by %q leaves %q", printed, a, left)
		}
	})
}

func TestStripper(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain\tü\r\n", "plain\tü\r\n"},
		{"\x1b[1;31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07after", "after"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1b(Bascii", "ascii"},
		{"\x1bPdcs\x1b\\x", "x"},
		{"a\x00\x08\x7fb", "ab"},
		{"\x1b[?25", ""},
		{"a\u009b6n\u009d52;c;eA==\u009c\u0085b", "a6n52;c;eA==b"}, // C1 in UTF-8, which terminals obey
		{"\u00a0\u00bf©", "\u00a0\u00bf©"},
	} {
		var s stripper
		if got := s.append(nil, []byte(c.in)); string(got) != c.want {
			t.Errorf("%q: %q, want %q", c.in, got, c.want)
		}
		var bytewise stripper
		var got []byte
		for i := range len(c.in) {
			got = bytewise.append(got, []byte{c.in[i]})
		}
		if string(got) != c.want {
			t.Errorf("%q byte by byte: %q, want %q", c.in, got, c.want)
		}
	}
}

func TestTrail(t *testing.T) {
	long := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name, shown, then, rest string
		joined                  bool
	}{
		{"nothing shown", "", "abc", "abc", true},
		{"the same", long(0, 1000), long(0, 1000), "", true},
		{"continued", long(0, 1000), long(0, 1010), long(1000, 1010), true},
		{"shorter history", long(0, 1000), long(900, 1010), long(1000, 1010), true},
		{"short text", "abc", "abcdef", "def", true},
		{"less than is remembered", long(0, 1000), long(990, 1000) + "more", "more", true},
		{"a gap", long(0, 1000), long(1500, 2000), long(1500, 2000), false},
		{"a chance match", "........x", "x and so on", "x and so on", false},
	} {
		var tr trail
		for _, line := range strings.SplitAfter(c.shown, "\n") {
			tr.add([]byte(line))
		}
		rest, joined := tr.join([]byte(c.then))
		if string(rest) != c.rest || joined != c.joined {
			t.Errorf("%s: rest %.60q, joined %t; want %.60q, %t", c.name, rest, joined, c.rest, c.joined)
		}
		if len(tr.last) > trailBytes {
			t.Errorf("%s: remembers %d bytes", c.name, len(tr.last))
		}
	}
}

func TestPlainView(t *testing.T) {
	code, took := int64(2), 1500.0
	for _, c := range []struct {
		name string
		tty  bool
		do   func(v *plainView) error
		want string
	}{
		{"what is there, then what comes", false, func(v *plainView) error {
			return errors.Join(v.resync(state("one\n")), v.data([]byte("two")), v.close())
		}, "one\ntwo"},
		{"commands for a person", true, func(v *plainView) error {
			return errors.Join(v.data([]byte("$ ")), v.action(ahp.TerminalCommandExecuted{CommandLine: "make\x1b"}), v.data([]byte("out\n")),
				v.action(ahp.TerminalCommandFinished{ExitCode: &code, DurationMs: &took}), v.close())
		}, "$ \r\n── make\uFFFD\r\nout\n── exit 2 after 1.5s\r\n"},
		{"commands for a program", false, func(v *plainView) error {
			return errors.Join(v.action(ahp.TerminalCommandExecuted{CommandLine: "make"}), v.data([]byte("out\n")))
		}, "out\n"},
		{"brought up to date", false, func(v *plainView) error {
			return errors.Join(v.data([]byte("abc")), v.action(ahp.TerminalCleared{}), v.data([]byte("abcdef")), v.resync(state("abcdefghi")))
		}, "abcdefghi"},
		{"with a gap", false, func(v *plainView) error {
			return errors.Join(v.data([]byte("abc")), v.resync(state("xyz")))
		}, "abc\r\n[output may be repeated or missing here]\r\nxyz"},
		{"left clean", true, func(v *plainView) error {
			return errors.Join(v.data([]byte("\x1b[?1049hx")), v.close(), v.close())
		}, "\x1b[?1049hx\x1b[?1049l\r\n"},
		{"what stood there before, for a person", true, func(v *plainView) error {
			return errors.Join(v.resync(late("\x1b[1;1Hheader", "\x1b[2;1Hx")), v.resync(late("\x1b[1;1Hheader", "\x1b[2;1Hxy")))
		}, "\x1b[r\x1b[H\x1b[2J\x1b[1;1Hheader\x1b[2;1Hxy"},
		{"what stood there before, for a program", false, func(v *plainView) error {
			return v.resync(late("\x1b[1;1Hheader", "\x1b[2;1Hx"))
		}, "\x1b[2;1Hx"},
		{"what stood there before, with a gap", true, func(v *plainView) error {
			return errors.Join(v.resync(state("a\n")), v.resync(late("header", "xyz")))
		}, "a\n[output may be repeated or missing here]\r\n\x1b[r\x1b[H\x1b[2Jheaderxyz"},
		{"a screen in the middle", true, func(v *plainView) error {
			s := late("header", "\x1b[?1049hold\n[missing]\nnew")
			s.Meta.Screen.After = int64(len("\x1b[?1049hold\n[missing]\n"))
			return errors.Join(v.data([]byte("\x1b[?1049hold\n")), v.resync(s), v.resync(s), v.data([]byte("er")))
		}, "\x1b[?1049hold\n[missing]\n\x1b[?1049l\x1b[r\x1b[H\x1b[2Jheadernewer"},
		{"a screen in the middle, with a gap", true, func(v *plainView) error {
			s := late("header", "old\n[missing]\nnew")
			s.Meta.Screen.After = int64(len("old\n[missing]\n"))
			return errors.Join(v.data([]byte("shown\n")), v.resync(s))
		}, "shown\n[output may be repeated or missing here]\r\nold\n[missing]\n\x1b[r\x1b[H\x1b[2Jheadernew"},
	} {
		var out strings.Builder
		if err := c.do(newPlainView(&out, c.tty, false)); err != nil || out.String() != c.want {
			t.Errorf("%s: %v, %q; want %q", c.name, err, out.String(), c.want)
		}
	}
}

func state(text string) ahp.TerminalState {
	return ahp.TerminalState{Title: "t", Content: []ahp.ContentPart{{Type: ahp.PartUnclassified, Value: text}}}
}

// late is the state of a terminal whose oldest output is not kept.
func late(before, text string) ahp.TerminalState {
	s := state(text)
	s.Meta.Screen = &ahp.Screen{Cols: 80, Rows: 24, Data: before}
	return s
}

func TestLineView(t *testing.T) {
	var out strings.Builder
	v := &lineView{out: &out, title: "t"}
	var before strings.Builder
	for i := range history + 5 {
		fmt.Fprintf(&before, "before %d\n", i)
	}
	err := errors.Join(v.resync(state(before.String())), v.data([]byte("10%\r20%\r\n\x1b[1mbo")), v.data([]byte("ld\x1b[0m\nrest")), v.say("exited 1"),
		v.data([]byte(strings.Repeat("x", maxLine+1)+"\n")))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"[t] before 14", "[t] 20%", "[t] bold", "[t] rest", "[t] ── exited 1"}
	if got := lines[history-1 : len(lines)-1]; !cmp.Equal(got, want) {
		t.Errorf("shown:\n%s", cmp.Diff(want, got))
	}
	if lines[0] != "[t] before 5" {
		t.Errorf("begins with %q", lines[0])
	}
	if last := lines[len(lines)-1]; len(last) != maxLine+1+len("[t] ") {
		t.Errorf("the long line has %d bytes", len(last))
	}
}

func TestFindAtHost(t *testing.T) {
	all := []ahp.TerminalInfo{{Title: "web", Resource: "ahp-terminal:/aa-1"}, {Title: "web server", Resource: "ahp-terminal:/bb-2"}, {Title: "DB", Resource: "ahp-terminal:/bb-3"}}
	for ref, want := range map[string]string{
		"web": "aa-1", "server": "bb-2", "db": "bb-3", "bb-3": "bb-3", "ahp-terminal:/bb-2": "bb-2", "aa": "aa-1",
	} {
		if got, err := find(all, ref); err != nil || !strings.HasSuffix(got.Resource, want) {
			t.Errorf("%q: %q, %v; want %s", ref, got.Resource, err, want)
		}
	}
	for ref, want := range map[string]local.Code{"nothing": local.CodeNoTerminal, "bb": local.CodeAmbiguous} {
		var e *local.Error
		if _, err := find(all, ref); !errors.As(err, &e) || e.Code != want || e.Hint == "" {
			t.Errorf("%q: %v, want %s with a hint", ref, err, want)
		}
	}
}

func TestExitStatuses(t *testing.T) {
	live, cancelled := context.Background(), func() context.Context {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}()
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"fine", live, nil, 0},
		{"anything", live, errors.New("x"), 1},
		{"usage", live, &usageError{}, 2},
		{"not running", live, fmt.Errorf("x: %w", local.ErrNotRunning), 3},
		{"not paired", live, about("x", &local.Error{Code: local.CodeNotPaired}), 4},
		{"refused", live, &local.Error{Code: local.CodeRefused}, 4},
		{"unreachable", live, &local.Error{Code: local.CodeUnreachable}, 5},
		{"denied", live, &hinted{&local.Error{Code: local.CodeDenied}, "hint"}, 6},
		{"no terminal", live, errors.Join(&local.Error{Code: local.CodeNoTerminal}, errors.New("x")), 7},
		{"timed out", live, context.DeadlineExceeded, 8},
		{"timed out over there", live, &local.Error{Code: local.CodeTimeout}, 8},
		{"the command's", live, exitCode(42), 42},
		{"interrupted", cancelled, fmt.Errorf("x: %w", context.Canceled), 130},
		{"pipe", live, syscall.EPIPE, 141},
		{"dropped", live, fmt.Errorf("%w: x", local.ErrDropped), 254},
		{"cannot attach", live, &cannotAttach{local.ErrNotRunning}, 255},
		{"code of a newer daemon", live, &local.Error{Code: "novel"}, 1},
	} {
		if got := exitStatus(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A list shows where a terminal is lent, since when if not from its start, the time left, and the number of watchers.
func TestLentText(t *testing.T) {
	now, watch, none := time.Now(), 2, 0
	until := now.Add(30*time.Minute + 30*time.Second)
	for want, loans := range map[string][]local.Loan{
		"-":                            {},
		"lab":                          {{Host: "lab", Since: now.Add(-time.Hour), Observers: &none}},
		"lab (since 20m)":              {{Host: "lab", Since: now.Add(-20 * time.Minute)}},
		"lab (since 20m, 30m left), b": {{Host: "lab", Since: now.Add(-20 * time.Minute), Until: &until}, {Host: "b", Since: now.Add(-time.Hour)}},
		"lab (30m left, 2 watching)":   {{Host: "lab", Since: now.Add(-time.Hour), Until: &until, Observers: &watch}},
		"lab (since 20m, 0s left)":     {{Host: "lab", Since: now.Add(-20 * time.Minute), Until: &now}},
	} {
		if got := lentText(local.Terminal{Started: now.Add(-time.Hour), Loans: loans}); got != want {
			t.Errorf("%+v: %q, want %q", loans, got, want)
		}
	}
	if got := lentText(local.Terminal{Private: true}); got != "private" {
		t.Errorf("private: %q", got)
	}
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		printable("a\x1b[31m\nb", 0):               "a\uFFFD[31m b",
		printable("abcdef", 3):                     "abc…",
		printable("äöü", 3):                        "äöü",
		ago(-time.Second):                          "0s",
		ago(59 * time.Second):                      "59s",
		ago(90 * time.Minute):                      "1h",
		ago(50 * time.Hour):                        "2d",
		shellLine([]string{"a", "b c", "", "d'e"}): `a 'b c' '' 'd'\''e'`,
		fmt.Sprint(environment([]string{"A=1", "TETHER_TOKEN=x", "TETHER_HOME=/h"})): "[A=1 TETHER_HOME=/h]",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Every command stands below a title in tether --help.
func TestCommandsHaveGroups(t *testing.T) {
	for _, c := range newRoot(&app{}).Commands() {
		if c.GroupID == "" && !c.Hidden {
			t.Errorf("%s has no group", c.Name())
		}
	}
}
