package attach

import (
	"testing"
	"time"
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
		{"\x1b\r~.", "\x1b\r", escapeDetach, ""},
		{"\x1bü~.", "\x1bü~.", escapeNone, ""},
		{"\r\x1b~.", "\r\x1b~.", escapeNone, ""},
		{"\r\x1b[I~.", "\r\x1b[I", escapeDetach, ""},
		{"\r\x1b[<35;1;1M~\x1b[<35;2;2M.", "\r\x1b[<35;1;1M", escapeDetach, ""},
		{"\r\x1b[?62;22c~.", "\r\x1b[?62;22c", escapeDetach, ""},
		{"\r\x1b]11;rgb:0/0/0\x1b\\~.", "\r\x1b]11;rgb:0/0/0\x1b\\", escapeDetach, ""},
		// A bracketed paste is text, in any form, until its end.
		{"\x1b[200~~.\r~.\x1b[201~", "\x1b[200~~.\r~.\x1b[201~", escapeNone, ""},
		{"\r~\x1b[200~.\r~?\x1b[20\x1b[201~~.\r~.", "\r~\x1b[200~.\r~?\x1b[20\x1b[201~~.\r", escapeDetach, ""},
		{"\x1b[200~\x1b]x\r~.\x1b[201~\r~.", "\x1b[200~\x1b]x\r~.\x1b[201~\r", escapeDetach, ""},
		// Kitty's keyboard: releases, with flags 2; all keys as codes, with flags 8, and
		// alternate keys (4), text (16), or neither.
		{"\r~\x1b[96:126;2:3u.\x1b[46;1:3u", "\r", escapeDetach, "\x1b[46;1:3u"},
		{"\r\x1b[13;1:3u~\x1b[57441;1:3u?x", "\r\x1b[13;1:3u", escapeHelp, "x"},
		{"\x1b[13u\x1b[13;1:3u\x1b[57441;2u\x1b[96:126;2u\x1b[96:126;2:3u\x1b[57441;1:3u\x1b[46u", "\x1b[13u\x1b[13;1:3u\x1b[57441;2u", escapeDetach, ""},
		{"\x1b[96:126;2u\x1b[46u", "", escapeDetach, ""},
		{"\x1b[96;2u\x1b[47;2u", "", escapeHelp, ""},
		{"\x1b[43;1;126u\x1b[46;;46u", "", escapeDetach, ""},
		{"\x1b[96:126;66u\x1b[57409;129u", "", escapeDetach, ""},
		{"\x1b[57414u\x1b[96:126;2:2u\x1b[46u", "\x1b[57414u", escapeDetach, ""},
		{"\x1b[96:126;2u\x1b[96:126;2:3u\x1b[96:126;2u\x1b[96:126;2:3u\x1b[46u", "\x1b[96:126;2u\x1b[96:126;2:3u\x1b[46u", escapeNone, ""},
		{"\x1b[96:126;2u\x1b[96:126;2:3u\x1b[97u", "\x1b[96:126;2u\x1b[96:126;2:3u\x1b[97u", escapeNone, ""},
		{"\x1b[97u\x1b[96:126;2u\x1b[46u", "\x1b[97u\x1b[96:126;2u\x1b[46u", escapeNone, ""},
		{"\x1b[13;5u\x1b[96:126;2u\x1b[46u", "\x1b[13;5u\x1b[96:126;2u\x1b[46u", escapeNone, ""},
		{"\x1b[96:126;2u\x1b[46;5u", "\x1b[96:126;2u\x1b[46;5u", escapeNone, ""},
		{"\x1b[13u\x1b[A\x1b[96:126;2u\x1b[46u", "\x1b[13u\x1b[A\x1b[96:126;2u\x1b[46u", escapeNone, ""},
		{"\x1b[13u\x1b[1;1:3A\x1b[96:126;2u\x1b[46u", "\x1b[13u\x1b[1;1:3A", escapeDetach, ""},
		// modifyOtherKeys in both formats, and Windows' keys.
		{"\r\x1b[27;2;126~.", "\r\x1b[27;2;126~.", escapeNone, ""}, // no program has switched that on
		{"\x1b[27;2;126~.", "", escapeDetach, ""},
		{"\x1b[126;2u\x1b[63;2u", "", escapeHelp, ""},
		{"\x1b[13;28;13;1;0;1_\x1b[13;28;13;0;0;1_\x1b[16;42;0;1;16;1_\x1b[192;41;126;1;16;1_\x1b[192;41;126;0;16;1_\x1b[190;52;46;1;0;1_", "\x1b[13;28;13;1;0;1_\x1b[13;28;13;0;0;1_\x1b[16;42;0;1;16;1_", escapeDetach, ""},
		{"\x1b[38;72;0;1;0;1_\x1b[192;41;126;1;16;1_\x1b[190;52;46;1;0;1_", "\x1b[38;72;0;1;0;1_\x1b[192;41;126;1;16;1_\x1b[190;52;46;1;0;1_", escapeNone, ""},
	} {
		var e escapes
		sent, did, rest := e.feed(nil, []byte(c.typed))
		if string(sent) != c.sent || did != c.did || string(rest) != c.rest {
			t.Errorf("%q: sent %q, did %d, rest %q; want %q, %d, %q", c.typed, sent, did, rest, c.sent, c.did, c.rest)
		}
	}
}

// Forms of keys that a program has switched on count also behind a plain Enter.
func TestCodedKeys(t *testing.T) {
	e := escapes{coded: true}
	sent, did, _ := e.feed(nil, []byte("x\r\x1b[27;2;126~."))
	if string(sent) != "x\r" || did != escapeDetach {
		t.Errorf("sent %q, did %d", sent, did)
	}
}

// A paste without an end ends, and a sequence without an end is a key, when nothing more
// comes.
func TestEscapesLapse(t *testing.T) {
	for _, c := range []struct {
		typed, sent, lapsed string
		after               time.Duration
		then                string // typed next, which detaches
	}{
		{"\x1b[200~a\r~.", "\x1b[200~a\r~.", "", pasteEnds, "\r~."},
		{"a\x1b", "a\x1b", "", sequenceEnds, "\r~."},
		{"a\x1b]", "a\x1b]", "", sequenceEnds, "\r~."},
		{"\x1b", "", "\x1b", sequenceEnds, "\r~."},
		{"\r~\x1b[96", "\r", "~\x1b[96", sequenceEnds, "\r~."},
		{"\r~", "\r", "", 0, "."},
		{"\x1b[200~a\x1b[201~", "\x1b[200~a\x1b[201~", "", 0, "\r~."},
	} {
		var e escapes
		sent, _, _ := e.feed(nil, []byte(c.typed))
		if string(sent) != c.sent || e.patience() != c.after {
			t.Errorf("%q: sent %q, ends after %v; want %q, %v", c.typed, sent, e.patience(), c.sent, c.after)
		}
		if c.after > 0 {
			if lapsed := e.lapse(nil); string(lapsed) != c.lapsed || e.patience() != 0 {
				t.Errorf("%q: at last it sends %q, want %q", c.typed, lapsed, c.lapsed)
			}
		}
		if _, did, _ := e.feed(nil, []byte(c.then)); did != escapeDetach {
			t.Errorf("%q, then %q: did %d", c.typed, c.then, did)
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
	for _, s := range []string{"~.", "a\r~~b\r~?~.", "~x~\r~", "\x1b[13u\x1b[96:126;2u\x1b[46u", "\r~\x1b[200~\r~.\x1b[201~\r~.", "\x1b[27;2;126~\x1b]x\a.", "\x1b[192;41;126;1;16;1_"} {
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
