package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// flooded is the flood's first n lines.
func flooded(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(FloodLine(i))
	}
	return b.String()
}

func TestTheFloodConsistsOfItsLines(t *testing.T) {
	want := flooded(500)
	for _, size := range []int{1, 7, 64, 1 << 20} {
		var f Flood
		var got strings.Builder
		for got.Len() < len(want) {
			got.WriteString(f.Next(min(size, len(want)-got.Len())))
		}
		if got.String() != want || f.Offset() != int64(len(want)) {
			t.Errorf("in pieces of %d bytes the stream differs from its lines, or stands at %d instead of %d", size, f.Offset(), len(want))
		}
	}
	if !utf8.ValidString(want) {
		t.Error("the flood is not UTF-8")
	}
}

func TestAnythingButTheFloodIsFound(t *testing.T) {
	lines := strings.SplitAfter(flooded(40), "\n")
	join := func(parts ...[]string) string {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(strings.Join(p, ""))
		}
		return b.String()
	}
	whole := join(lines)
	cases := []struct{ name, text, want string }{
		{"whole", whole, ""},
		{"a part of it", whole[:1000], ""},
		{"a line lost", join(lines[:7], lines[8:]), "in line 7: got"},
		{"a line repeated", join(lines[:7], lines[6:]), "(before line 6)"},
		{"two lines exchanged", join(lines[:7], lines[8:9], lines[7:8], lines[9:]), "(before line 8)"},
		{"a byte lost", whole[:700] + whole[701:], "at offset 70"},
		{"a byte changed", whole[:700] + "\x00" + whole[701:], "at offset 700"},
		{"begun late", whole[3:], "at offset 0, in line 0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 13, len(c.text)} {
				var check FloodCheck
				var err error
				for rest := c.text; rest != "" && err == nil; {
					n := min(size, len(rest))
					_, err = check.Write([]byte(rest[:n]))
					rest = rest[n:]
				}
				switch {
				case c.want == "" && (err != nil || check.Offset() != int64(len(c.text))):
					t.Errorf("in pieces of %d: %v at %d", size, err, check.Offset())
				case c.want != "" && err == nil:
					t.Errorf("in pieces of %d: nothing was found", size)
				case size == len(c.text) && c.want != "" && !strings.Contains(err.Error(), c.want):
					t.Errorf("the error %q does not say %q", err, c.want)
				}
				if _, again := check.Write(nil); !errors.Is(again, err) {
					t.Errorf("after %v the next write returned %v", err, again)
				}
			}
		})
	}
}

func TestGapsInTheFloodHaveTheirSize(t *testing.T) {
	text := flooded(100)
	note := func(n int) string { return fmt.Sprintf("\r\n[tether: %d bytes of output are missing here]\r\n", n) }
	gaps, end, err := CheckFlood(text[:500] + note(1000) + text[1500:1600] + note(7) + text[1607:])
	if err != nil || end != int64(len(text)) || len(gaps) != 2 || gaps[0] != 1000 || gaps[1] != 7 {
		t.Errorf("gaps %v, end %d, %v; want 1000 and 7", gaps, end, err)
	}
	for _, wrong := range []string{note(999), note(1001), note(0), "\r\n[tether: x bytes of output are missing here]\r\n", ""} {
		if _, _, err := CheckFlood(text[:500] + wrong + text[1500:]); err == nil {
			t.Errorf("1000 missing bytes pass for %q", wrong)
		}
	}
}

func TestTheFloodProgram(t *testing.T) {
	command := FloodCommand(t, 300, 7)
	out, err := exec.Command(command[0], command[1:]...).Output()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 7 {
		t.Errorf("ended with %v, want 7", err)
	}
	if got := strings.ReplaceAll(string(out), "\n", "\r\n"); got != flooded(300) {
		t.Errorf("printed %d bytes, want the first 300 lines, %d", len(got), len(flooded(300)))
	}
}

// A flood that was cut off in the middle of a character has ended there, however text
// shows that; nothing else may be wrong.
func TestTheFloodEndsAnywhere(t *testing.T) {
	whole := flooded(40)
	at, long := strings.Index(whole, "é"), strings.Index(whole, "🙂")
	for name, c := range map[string]struct {
		texts []string
		ended int
		want  bool
	}{
		"whole":                      {[]string{whole}, len(whole), true},
		"less than it wrote":         {[]string{whole[:at]}, at + 1, false},
		"cut in a character":         {[]string{whole[:at] + "\uFFFD"}, at + 1, true},
		"the same in pieces":         {[]string{whole[:at], "\uFFFD"}, at + 1, true},
		"cut in a long one":          {[]string{whole[:long] + "\uFFFD\uFFFD\uFFFD"}, long + 3, true},
		"that one in pieces":         {[]string{whole[:long] + "\uFFFD", "\uFFFD\uFFFD"}, long + 3, true},
		"a long one replaced":        {[]string{whole[:long] + "\uFFFD\uFFFD\uFFFD\uFFFD"}, long + 4, false},
		"cut where there is none":    {[]string{whole[:at] + "\uFFFD"}, at, false},
		"a whole character replaced": {[]string{whole[:at] + "\uFFFD"}, at + len("é"), false},
		"and gone on":                {[]string{whole[:at] + "\uFFFD", whole[at+2:]}, len(whole), false},
	} {
		var check FloodCheck
		for _, text := range c.texts {
			_, _ = check.Write([]byte(text)) // Ended says it
		}
		if err := check.Ended(int64(c.ended)); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
