package adopt_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tether/agent/adopt"
	"tether/internal/testkit/check"
)

// FuzzReply puts any text where tmux puts what a pane shows. Whatever it looks like, it
// comes out whole, and output around it stays output.
func FuzzReply(f *testing.F) {
	f.Add("%end 1 2 1\nTOKEN", "%output %0 x\n%exit")
	f.Add("", "\x1b[31m\\033")
	f.Fuzz(func(t *testing.T, one, two string) {
		const token = "K7Q2"
		if strings.Contains(one+two, token) { // nobody can guess it
			t.Skip()
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%%output %%0 before\n%%begin 1 1 1\n%s0\n%%end 1 1 1\n", token)
		for i, text := range []string{one, two} {
			fmt.Fprintf(&b, "%%begin 1 2 1\n%s\n%%end 1 2 1\n%%begin 1 3 1\n%s%s\n%%end 1 3 1\n", text, token, []string{"1", "done"}[i])
		}
		fmt.Fprintf(&b, "%%extended-output %%0 12 : af\\033ter\n%%begin 1 4 1\n%send\n%%end 1 4 1\n", token)
		parts, output := adopt.Reply(token, b.String())
		want := []string{one, two}
		if output != "beforeaf\x1bter" || len(parts) != 2 || parts[0] != want[0] || parts[1] != want[1] {
			t.Fatalf("parts %q, output %q; want %q", parts, output, want)
		}
	})
}

// Output without a byte is none.
func TestEmptyOutput(t *testing.T) {
	for _, line := range []string{"%output %0 ", "%output %0", "%output", "%extended-output %0 12 : ", "%extended-output %0 12", "%extended-output"} {
		if _, output := adopt.Reply("K", line+"\n%output %0 x\n"); output != "x" {
			t.Errorf("%s: output %q", line, output)
		}
	}
}

func TestReplyThatFails(t *testing.T) {
	for _, lines := range []string{
		"K0\n%end 1 1 1\n%begin 1 2 1\ncan't find pane: %9\n%error 1 2 1\n%begin 1 3 1\nKend\n",                            // a command failed
		"K0\n%end 1 1 1\n%output %0 x\n%begin 1 2 1\nt\n%end 1 2 1\n%begin 1 3 1\nKdone\n%end 1 3 1\n%begin 1 4 1\nKend\n", // output between two commands
		"Kdone\nKend\n",
		"K1\nKend\n",
	} {
		if parts, _ := adopt.Reply("K", lines); parts != nil {
			t.Errorf("%q: parts %q", lines, parts)
		}
	}
}

// tmux since 3.8 tells after a command that it has paused or continued a pane. What a
// pane shows may look like that.
func TestReplyOfPausing(t *testing.T) {
	shown := "%end 1 9 1\n%continue %0\n%begin 1 9 1\n%pause %0"
	text := "K0\n%end 1 1 1\n%begin 1 2 1\n%end 1 2 1\n%pause %0\n%begin 1 3 1\nK1\n%end 1 3 1\n%begin 1 4 1\n" + shown + "\n%end 1 4 1\n%begin 1 5 1\nKdone\n"
	if parts, _ := adopt.Reply("K", text); len(parts) != 2 || parts[0] != "" || parts[1] != shown {
		t.Errorf("parts %q", parts)
	}
}

func TestReplyIsBounded(t *testing.T) {
	line := strings.Repeat("x", 1<<20)
	text := "K0\n%end 1 1 1\n%begin 1 2 1\n" + strings.Repeat(line+"\n", 20) + strings.Repeat("y", 9<<20) + "\n%end 1 2 1\n%begin 1 3 1\nKdone\n"
	parts, _ := adopt.Reply("K", text)
	if len(parts) != 1 || len(parts[0]) > 5<<20 || !strings.HasSuffix(parts[0], "yyy") {
		t.Errorf("%d parts", len(parts))
	}
}

func TestSizesInLayouts(t *testing.T) {
	for _, tt := range []struct{ layouts, pane, want string }{
		{"b25d,80x24,0,0,3 b25d,80x24,0,0,3 *", "%3", "80x24"},
		{"bb62,159x48,0,0{79x48,0,0,3,79x48,80,0[79x24,80,0,1,79x23,80,25,12]}", "%12", "79x23"},
		{"bb62,159x48,0,0{79x48,0,0,3,79x48,80,0[79x24,80,0,1,79x23,80,25,12]}", "%2", ""},
		{"bb62,159x48,0,0{79x48,0,0,3,79x48,80,0,1} aaaa,159x48,0,0,3", "%3", "159x48"}, // zoomed
		{"bb62,159x48,0,0{79x48,0,0,3,79x48,80,0,1} aaaa,159x48,0,0,3", "%1", "79x48"},
		{"x,99999999999999999999x1,0,0,3", "%3", ""},
		{",,,,", "%", ""},
	} {
		if got := adopt.SizeIn(tt.layouts, tt.pane); got != tt.want {
			t.Errorf("%s in %s: %q, want %q", tt.pane, tt.layouts, got, tt.want)
		}
	}
}

func TestExactVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"3.2": true, "3.2a": true, "3.3a": true, "3.6b": true, "next-3.7": true, "4.0": true, "openbsd-7.4": true, "master": true, "3.10": true, "3.2-rc3": true,
		"3.1c": false, "2.9a": false, "1.8": false, "": false, "next-3.1": false, "x.y": false,
	} {
		if got := adopt.Exactly(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}

func TestTargets(t *testing.T) {
	for text, want := range map[string]adopt.Target{
		"tmux:%3":            {Program: "tmux", Pane: "%3"},
		"tmux:work:%3":       {Program: "tmux", Server: "work", Pane: "%3"},
		"tmux:/tmp/a:b/s:%3": {Program: "tmux", Server: "/tmp/a:b/s", Pane: "%3"},
		"zellij:main:1":      {Program: "zellij", Server: "main", Pane: "1"},
	} {
		got, err := adopt.ParseTarget(text)
		check.OK(t, err)
		check.Equal(t, text, want, got)
		check.Equal(t, "text of "+text, text, got.String())
	}
	for _, text := range []string{"", "tmux", "tmux:", ":", ":%3", "tmux:a:", "tmux:\n%3", strings.Repeat("x", 400) + ":%3"} {
		if got, err := adopt.ParseTarget(text); err == nil || !strings.Contains(err.Error(), "tether adopt") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestStyles checks that each line of a capture looks the same alone.
func TestStyles(t *testing.T) {
	capture := "a\x1b[1m\x1b[31mb\n\nc\x1b[0;4m\x1b[31md\x1b[39me\x1b[48;5;9m\nf\x1b[49mg\x0eq\nq\x0fr\x1b[0m\x1b]8;;http://x\x1b\\l\nm\x1b]8;;\x1b\\n"
	want := []string{
		"a\x1b[1m\x1b[31mb\x1b[m", "", "\x1b[1m\x1b[31mc\x1b[0;4m\x1b[31md\x1b[39me\x1b[48;5;9m\x1b[m", "\x1b[0;4m\x1b[48;5;9mf\x1b[49mg\x0eq\x0f\x1b[m",
		"\x1b[0;4m\x0eq\x0fr\x1b[0m\x1b]8;;http://x\x1b\\l\x1b]8;;\x1b\\", "\x1b]8;;http://x\x1b\\m\x1b]8;;\x1b\\n",
	}
	check.Equal(t, "styled lines", want, adopt.Styled(bytes.Split([]byte(capture), []byte("\n"))))
}
