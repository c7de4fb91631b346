package redact_test

import (
	"strings"
	"testing"

	"tether/agent/redact"
)

// blank is the replacement of a string with n bytes between introducer and the two bytes
// of its end.
func blank(n int) string { return "\x1b_" + strings.Repeat("-", n) + "\x1b\\" }

func TestSequences(t *testing.T) {
	long := strings.Repeat("x", 600)
	same := "\x00same"
	for _, c := range []struct{ name, in, want string }{
		{"plain", "hello wörld\r\n", same},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mx\x1b[K", same},
		{"cursor", "\x1b[2J\x1b[H\x1b[?1049h\x1b7\x1b8\x1b(B\x1bM", same},
		{"title", "\x1b]0;vim\a\x1b]2;x\x1b\\", same},
		{"long title", "a\x1b]0;" + long + "\ab", "a" + blank(601) + "b"},
		{"title that hides", "\x1b]0;a\u202eb\a", blank(6)},
		{"link", "\x1b]8;id=1;https://x.example/a\x1b\\x\x1b]8;;\x1b\\", same},
		{"link to a file", "\x1b]8;;file:///etc/x\ax\x1b]8;;\a", blank(15) + "x\x1b]8;;\a"},
		{"link to a script", "\x1b]8;;javascript:1\x1b\\x", blank(15) + "x"},
		{"link with a number of zeros", "\x1b]08;;file:///x\a", blank(12)},
		{"link without a scheme", "\x1b]8;;x\a", blank(3)},
		{"mail", "\x1b]8;;MAILTO:a@b\a", same},
		{"clipboard", "\x1b]52;c;aGk=\a", blank(8)},
		{"clipboard read", "\x1b]52;c;?\a", blank(5)},
		{"colours asked for", "\x1b]11;?\a\x1b]4;1;?\x1b\\", blank(3) + blank(5)},
		{"colours set", "\x1b]11;#ffffff\a\x1b]104\a\x1b]112\x1b\\", same},
		{"notification", "\x1b]9;done\a\x1b]777;notify;a;b\a\x1b]9;4;1;50\a", same},
		{"long notification", "\x1b]9;" + long + "\a", blank(601)},
		{"ConEmu macro", "\x1b]9;6;x\a", blank(4)},
		{"unknown OSC", "\x1b]1234;x\ay", blank(5) + "y"},
		{"OSC that is a word", "\x1b]Lx\ay", blank(1) + "y"},
		{"empty OSC", "\x1b]\ay", "\x1b\x18\x00y"},
		{"OSC with one byte", "\x1b]5\ay", "\x1b\x18\x00\x00y"},
		{"OSC with one byte and ST", "\x1b]5\x1b\\y", "\x1b\x18\x00\x1b\\y"},
		{"OSC with controls", "\x1b]8;;ht\ntp://x\a", blank(11)},
		{"C1", "\u009d8;;file:x\u009cy", "\x1b_---------\x1b\\y"},
		{"C1 allowed", "\u009d0;x\u009cy", same},
		{"C1 short", "\u009dx\ay", "\x00\x00\x00\x00y"},
		{"other sequence ends it", "\x1b]8;;file:x\x1b[0my", "\x1b_-------\x1b\\\x1b[0my"},
		{"a character set behind a string", "\u009b(q\u009d0;x\x1b%@\u009d0;x\x1b(0", "\u009b(\x18\u009d0;x\x1b%\x18\u009d0;x\x1b(0"},
		{"modes that are no numbers", "\x1b[?25:1h\x1b[?1;25h\x1b[?h", "\x1b[?25:1\x18\x1b[?1;25h\x1b[?\x18"},
		{"cancelled", "\x1b]8;;file:x\x18y", "\x1b_--------\x1b\\y"},
		{"DCS", "\x1bP1$tx\x1b\\y", "\x1b_----\x1b\\y"},
		{"tmux passthrough", "\x1bPtmux;\x1b\x1b]52;c;x\a\x1b\\y", "\x1b_---\x1b\\\x1b" + blank(5) + "\x1b\\y"},
		{"APC", "\x1b_x\ay\x1b\\z", "\x1b_---\x1b\\z"},
		{"PM and SOS", "\x1b^ab\x1b\\\x1bXab\x1b\\z", "\x1b_--\x1b\\\x1b_--\x1b\\z"},
		{"who are you", "\x1bZ\u009ax", "\x1b\x18\x18\x18x"},
		{"print", "\x1b[5ix\x1b[?4i", "\x1b[5\x18x\x1b[?4\x18"},
		{"modes that answer, with controls in front", "\x1b[\x00?2031h\u009b\a?2048hx\x1b[\x7f?25h", "\x1b[\x00?2031\x18\u009b\a?2048\x18x\x1b[\x7f?25h"},
		{"window", "\x1b[8;1;1t\x1b[22;0t\x1b[23t\x1b[t", "\x1b[8;1;1\x18\x1b[22;0t\x1b[23t\x1b[\x18"},
		{"sixel", "\x1bP0;1q\"1;1#0~\r\n-\x1b\\y", same},
		{"iTerm2 image", "\x1b]1337;File=inline=1;size=4:AAAA\ay", same},
		{"iTerm2 download", "\x1b]1337;File=name=eA==:AAAA\ay", blank(23) + "y"},
		{"iTerm2 in parts", "\x1b]1337;MultipartFile=inline=1\a\x1b]1337;FilePart=AAAA\a\x1b]1337;FileEnd\a", same},
		{"iTerm2 part of nothing", "\x1b]1337;FilePart=AAAA\a", blank(17)},
		{"iTerm2 clipboard", "\x1b]1337;Copy=:AAAA\a", blank(14)},
		{"iTerm2 asks", "\x1b]1337;ReportCellSize\a", blank(18)},
		{"kitty", "\x1b_Ga=T,f=100,m=1;AAAA\x1b\\\x1b_Gm=0;AAAA\x1b\\", same},
		{"kitty that answers", "\x1b_Ga=T,i=1;AAAA\x1b\\\x1b_Gm=0;AA\x1b\\", "\x1b_-------------\x1b\\\x1b_Gm=0;AA\x1b\\"},
		{"kitty quiet", "\x1b_Ga=T,i=1,q=2;AAAA\x1b\\\x1b_Ga=d\x1b\\", same},
		{"kitty query", "\x1b_Ga=q,q=2;AAAA\x1b\\", "\x1b_-------------\x1b\\"},
		{"kitty file", "\x1b_Ga=T,t=f;AAAA\x1b\\", "\x1b_-------------\x1b\\"},
		{"unfinished", "x\x1b]8;;file:", "x\x1b_--------"},
	} {
		want := c.want
		if want == same {
			want = c.in
		}
		r := compile(t, redact.Options{Images: 1 << 20})
		if got := shown(r, c.in); got != want {
			t.Errorf("%s: %q is shown as\n%q, want\n%q", c.name, c.in, got, want)
		}
		if got := inPieces(t, r, c.in, func(string) int { return 1 }); c.name != "unfinished" && got != want {
			t.Errorf("%s: byte by byte it is shown as\n%q, want\n%q", c.name, got, want)
		}
	}
}

func TestAllowedSequences(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       redact.Options
		in      string
		allowed bool
	}{
		{"file links", redact.Options{FileLinks: true}, "\x1b]8;;file:///x\a", true},
		{"clipboard", redact.Options{Clipboard: true}, "\x1b]52;c;aGk=\a", true},
		{"clipboard read", redact.Options{Clipboard: true}, "\x1b]52;c;?\a", false},
		{"large clipboard", redact.Options{Clipboard: true}, "\x1b]52;c;" + strings.Repeat("A", 5000) + "\a", false},
		{"no images", redact.Options{}, "\x1bPq~\x1b\\", false},
	} {
		if got := shown(compile(t, c.o), c.in); (got == c.in) != c.allowed {
			t.Errorf("%s: %q is shown as %q", c.name, c.in, got)
		}
	}
}

// Of notifications some are let through, until there is room again.
func TestNotificationsAreFew(t *testing.T) {
	r := compile(t, redact.Options{})
	got := shown(r, strings.Repeat("\x1b]9;x\a\x1b]9;4;1;5\a", 20))
	if n := strings.Count(got, "]9;x"); n != 10 || strings.Count(got, "]9;4;") != 20 {
		t.Errorf("%d notifications and %d reports of progress are shown", n, strings.Count(got, "]9;4;"))
	}
}

// A limited number of titles passes, however they are set, until the allowance is
// renewed; other sequences do not use it.
func TestTitlesAreCounted(t *testing.T) {
	const most = 600
	long := "\x1b]2;" + strings.Repeat("x", 600) + "\a"
	for _, c := range []struct{ name, title, blank string }{
		{"window and icon", "\x1b]0;x\a", blank(2)},
		{"icon", "\x1b]1;x\a", blank(2)},
		{"window", "\x1b]2;x\x1b\\", "\x1b_---\x1b\\"},
		{"empty", "\x1b]2;\a", blank(1)},
		{"C1", "\u009d2;x\u009c", "\x1b_---\x1b\\"},
		{"off the stack", "\x1b[23;0t", "\x1b[23;0\x18"},
	} {
		r := compile(t, redact.Options{})
		all := "\x1b[22;0t" + long + strings.Repeat("\x1b]9;x\a\x1b]8;;\a", 10)
		want := strings.Replace(all, long, blank(601), 1) + strings.Repeat(c.title, most) + c.blank + "\x1b[22;0t$ "
		in := all + strings.Repeat(c.title, most+1) + "\x1b[22;0t$ "
		if got := shown(r, in); got != want {
			t.Errorf("%s: %d titles are shown as %d, and the end as %q", c.name, most+1, strings.Count(got, c.title), got[len(got)-30:])
		}
		if got := inPieces(t, r, in, func(string) int { return 1 }); got != want {
			t.Errorf("%s: byte by byte they are shown as %d", c.name, strings.Count(got, c.title))
		}
		f := redact.NewFilter(r, 0)
		f.Feed([]byte(in))
		f.Take()
		f.Renew()
		f.Feed([]byte(c.title))
		if secrets, sequences := f.Take(); len(secrets)+len(sequences) > 0 {
			t.Errorf("%s: later a title is shown with %v", c.name, sequences)
		}
	}
}

// Images are let through up to a number of bytes, then ended where they are, until there
// is room again.
func TestImages(t *testing.T) {
	r := compile(t, redact.Options{Images: 100})
	f := redact.NewFilter(r, 0)
	feed := func(in string) string {
		out := []byte(in)
		from := f.Decided()
		f.Feed(out)
		secrets, sequences := f.Take()
		for _, m := range append(secrets, sequences...) {
			m.Put(out, from)
		}
		if f.Decided() != from+int64(len(in)) {
			t.Fatalf("%q is held back", in)
		}
		return string(out)
	}
	sixel := func(n int) string { return "\x1bPq" + strings.Repeat("~", n) + "\x1b\\" }
	if in := sixel(60); feed(in) != in {
		t.Error("the first image is not shown")
	}
	want := "\x1bPq" + strings.Repeat("~", 40) + "\x1b\\" + "\x1b_" + strings.Repeat("-", 16) + "\x1b\\"
	if got := feed(sixel(60)); got != want {
		t.Errorf("what is too much is shown as\n%q, want\n%q", got, want)
	}
	if got := feed(sixel(10)); strings.Contains(got, "~") {
		t.Errorf("a third is shown as %q", got)
	}
	f.Renew()
	if in := sixel(100); feed(in) != in {
		t.Error("later an image is not shown")
	}
}
