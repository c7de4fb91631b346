package redact_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit/must"
)

// Sequences that programs use to draw leave unchanged. Any other sequence is blanked: no
// terminal sees it.
func TestSequencesThatLeave(t *testing.T) {
	table := must.Get(os.ReadFile("testdata/sequences.txt"))(t)
	r := compile(t, redact.Options{Images: 1 << 20})
	rows := map[string]int{}
	for line := range strings.Lines(string(table)) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.SplitN(line, "\t", 3)
		sequence, err := strconv.Unquote(`"` + strings.NewReplacer(`\"`, `\"`, `"`, `\"`).Replace(fields[2]) + `"`)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		rows[fields[0]]++
		// Alone, and between so much text that it is looked at in blocks.
		for _, around := range []string{"", strings.Repeat("text ", 40)} {
			text := around + sequence + around
			got := shown(r, text)
			if passes := got == text; passes != (fields[0] == "pass") {
				t.Errorf("%s: %q leaves as %q", fields[1], sequence, got)
			}
			if again := inPieces(t, r, text, func(string) int { return 1 }); again != got {
				t.Errorf("%s: byte by byte %q leaves as %q, whole as %q", fields[1], sequence, again, got)
			}
		}
	}
	if rows["pass"] < 50 || rows["stop"] < 80 {
		t.Errorf("the table has %v rows", rows)
	}
}

// Of all control sequences with one final byte, only listed ones leave.
func TestNoOtherControlLeaves(t *testing.T) {
	r := compile(t, redact.Options{})
	for _, prefix := range []string{"", "<", "=", ">", "?", " ", "!", "#", "$", "%", "&", "'", "*", "+", ","} {
		leave := ""
		for final := byte(0x40); final < 0x7f; final++ {
			text := "\x1b[" + prefix + string(final)
			if prefix != "" && prefix[0] < '0' {
				text = "\x1b[1" + prefix + string(final)
			}
			if shown(r, text) == text {
				leave += string(final)
			}
		}
		want := map[string]string{"": "@ABCDEFGHIJKLMPSTXZ^`abdefghjklmrsu", "<": "u", "=": "u", ">": "mnpu", "?": "JKWlrs", " ": "@Aq", "!": "p", "#": "PQpq{}",
			"$": "rtvxz{", "'": "}~", "*": "x"}[prefix]
		if leave != want {
			t.Errorf("behind %q leave %q, want %q", prefix, leave, want)
		}
	}
}
