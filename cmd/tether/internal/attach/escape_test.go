package attach

import "testing"

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
