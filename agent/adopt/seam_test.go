package adopt_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"tether/agent/adopt"
	"tether/internal/testkit"
	"tether/screen"
)

// countVerb makes the test program print numbered lines without an end, in pieces that
// end anywhere: within characters, sequences and lines.
const countVerb = "count"

var tails = []string{"編集 é ok", "\x1b[31mred\x1b[0m 編", "\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\ 😀", "", strings.Repeat("長い行 long \x1b[1m€\x1b[m ", 9), "\x1b[38;2;1;2;3;48;5;200mé\x1b[0m\x1b[K"}

func counted(n int) string { return fmt.Sprintf("%07d %s.", n, tails[n%len(tails)]) }

// shown is counted as a terminal shows it.
func shown(n int) string {
	s := screen.New(200, 1)
	_, _ = s.Write([]byte(counted(n)))
	return strings.TrimSpace(s.Text())
}

func printCount(every time.Duration) {
	random := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(every)
	var text []byte
	for n := 0; ; {
		for range 20 {
			for len(text) < 300 {
				text = append(text, counted(n)+"\r\n"...)
				n++
			}
			size := 1 + random.IntN(60)
			if _, err := os.Stdout.Write(text[:size]); err != nil {
				return
			}
			text = text[size:]
		}
		<-tick.C
	}
}

// sink is a reader's terminal that has enough after some lines below the picture.
type sink struct {
	strings.Builder
	lines int
	seam  bool
}

func (s *sink) Write(p []byte) (int, error) {
	if s.lines < 0 {
		return 0, errors.New("enough")
	}
	if s.seam { // the first writing is the picture
		s.lines -= strings.Count(string(p), "\n")
	}
	s.seam = s.seam || strings.Contains(string(p), "\x1b)B")
	return s.Builder.Write(p)
}

// TestSeam adopts a pane again and again while it counts. At the seam between the picture
// and the output, nothing is lost or doubled.
func TestSeam(t *testing.T) {
	m := startServer(t, "exec sh")
	m.tmux("set-option", "-g", "history-limit", "300")
	p := m.find(m.tmux("new-window", "-P", "-F", "#{pane_id}", "stty raw; exec '"+os.Args[0]+"' "+countVerb+" 2ms"))
	for round := range testkit.Rounds(t, testkit.Load(40, 10), 1000) {
		s := &sink{lines: 20 + round%50}
		adopt.Read(p, "N", s)
		if !checkCount(t, s.String()) {
			t.Fatalf("round %d", round)
		}
	}
}

// checkCount checks that the text is numbered lines without a hole.
func checkCount(t *testing.T, out string) bool {
	t.Helper()
	term := screen.New(80, 24)
	_, _ = term.Write([]byte(out))
	text, _ := term.History()
	next, lines := -1, 0
	scan := bufio.NewScanner(strings.NewReader(text))
	var all []string
	for scan.Scan() {
		all = append(all, scan.Text())
	}
	for _, line := range all[1 : len(all)-1] { // the first and the last may be parts of one
		number, _, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		if err != nil || next >= 0 && n != next || strings.TrimSpace(line) != shown(n) {
			t.Errorf("after line %d: %q, want %q", next-1, line, shown(max(0, next)))
			at := strings.Index(out, "\x1b)B")
			t.Logf("seam: %q", out[max(0, at-300):min(len(out), at+300)])
			return false
		}
		next = n + 1
		lines++
	}
	if lines < 15 {
		t.Errorf("only %d lines of %q", lines, out[max(0, len(out)-500):])
	}
	return lines >= 15
}
