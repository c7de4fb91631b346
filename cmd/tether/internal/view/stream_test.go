package view

import (
	"errors"
	"strings"
	"testing"

	"tether/ahp"
	"tether/internal/testkit/must"
)

func TestPlainView(t *testing.T) {
	code, took := int64(2), 1500.0
	for _, c := range []struct {
		name string
		tty  bool
		do   func(v *Stream) error
		want string
	}{
		{"what is there, then what comes", false, func(v *Stream) error {
			return errors.Join(v.Resync(state("one\n")), v.Data([]byte("two")), v.Close())
		}, "one\ntwo"},
		{"commands for a person", true, func(v *Stream) error {
			return errors.Join(v.Data([]byte("$ ")), v.Action(ahp.TerminalCommandExecuted{CommandLine: "make\x1b"}), v.Data([]byte("out\n")),
				v.Action(ahp.TerminalCommandFinished{ExitCode: &code, DurationMs: &took}), v.Close())
		}, "$ \r\n── make\uFFFD\r\nout\n── exit 2 after 1.5s\r\n"},
		{"commands for a program", false, func(v *Stream) error {
			return errors.Join(v.Action(ahp.TerminalCommandExecuted{CommandLine: "make"}), v.Data([]byte("out\n")))
		}, "out\n"},
		{"brought up to date", false, func(v *Stream) error {
			return errors.Join(v.Data([]byte("abc")), v.Action(ahp.TerminalCleared{}), v.Data([]byte("abcdef")), v.Resync(state("abcdefghi")))
		}, "abcdefghi"},
		{"with a gap", false, func(v *Stream) error {
			return errors.Join(v.Data([]byte("abc")), v.Resync(state("xyz")))
		}, "abc\r\n[output may be repeated or missing here]\r\nxyz"},
		{"left clean", true, func(v *Stream) error {
			return errors.Join(v.Data([]byte("\x1b[?1049hx")), v.Close(), v.Close())
		}, "\x1b[?1049hx\x1b[?1049l\r\n"},
		{"what stood there before, for a person", true, func(v *Stream) error {
			return errors.Join(v.Resync(late("\x1b[1;1Hheader", "\x1b[2;1Hx")), v.Resync(late("\x1b[1;1Hheader", "\x1b[2;1Hxy")))
		}, "\x1b[r\x1b[H\x1b[2J\x1b[1;1Hheader\x1b[2;1Hxy"},
		{"what stood there before, for a program", false, func(v *Stream) error {
			return v.Resync(late("\x1b[1;1Hheader", "\x1b[2;1Hx"))
		}, "\x1b[2;1Hx"},
		{"what stood there before, with a gap", true, func(v *Stream) error {
			return errors.Join(v.Resync(state("a\n")), v.Resync(late("header", "xyz")))
		}, "a\n[output may be repeated or missing here]\r\n\x1b[r\x1b[H\x1b[2Jheaderxyz"},
		{"a screen in the middle", true, func(v *Stream) error {
			s := late("header", "\x1b[?1049hold\n[missing]\nnew")
			s.Meta.Screen.After = int64(len("\x1b[?1049hold\n[missing]\n"))
			return errors.Join(v.Data([]byte("\x1b[?1049hold\n")), v.Resync(s), v.Resync(s), v.Data([]byte("er")))
		}, "\x1b[?1049hold\n[missing]\n\x1b[?1049l\x1b[r\x1b[H\x1b[2Jheadernewer"},
		{"a screen in the middle, with a gap", true, func(v *Stream) error {
			s := late("header", "old\n[missing]\nnew")
			s.Meta.Screen.After = int64(len("old\n[missing]\n"))
			return errors.Join(v.Data([]byte("shown\n")), v.Resync(s))
		}, "shown\n[output may be repeated or missing here]\r\nold\n[missing]\n\x1b[r\x1b[H\x1b[2Jheadernew"},
	} {
		var out strings.Builder
		if err := c.do(NewStream(&out, c.tty, false)); err != nil || out.String() != c.want {
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

// A terminal gets it so; a file or another program gets everything.
func TestWatchedTextIsSafeAtATerminal(t *testing.T) {
	for _, isTTY := range []bool{true, false} {
		var out strings.Builder
		v := NewStream(&out, isTTY, false)
		must.Do(t, v.Resync(ahp.TerminalState{}))
		must.Do(t, v.Data([]byte("a\x1b[cb")))
		if got := out.String(); strings.Contains(got, "\x1b[c") == isTTY || !strings.HasPrefix(got, "a") || !strings.HasSuffix(got, "b") {
			t.Errorf("at a terminal: %v: %q", isTTY, got)
		}
	}
}
