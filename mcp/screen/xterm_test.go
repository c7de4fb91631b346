package screen_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/mcp/screen"
)

// xtermEnv names a directory in which "npm install @xterm/headless" was run.
const xtermEnv = "TETHER_XTERM"

// xtermScreen is what xterm.js shows.
type xtermScreen struct {
	Rows     []string
	Col, Row int
}

// TestXterm compares random streams with what xterm.js shows: the text, and
// where the cursor is.
func TestXterm(t *testing.T) {
	dir := os.Getenv(xtermEnv)
	if dir == "" {
		t.Skipf("needs node and @xterm/headless: npm install @xterm/headless@6.0.0 somewhere and set %s to that directory", xtermEnv)
	}
	const streams, seed = 2000, 2
	rng := rand.New(rand.NewPCG(4, seed))
	var in bytes.Buffer
	var all []stream
	for range streams {
		s := randomStream(rng)
		all = append(all, s)
		fmt.Fprintln(&in, s.cols, s.rows, base64.StdEncoding.EncodeToString(s.data))
	}
	bad := 0
	for i, want := range runXterm(t, dir, &in) {
		if want == nil {
			continue // xterm.js gave up
		}
		s := all[i]
		got := screen.New(s.cols, s.rows)
		got.Write(s.data)
		wantText := strings.TrimRight(strings.Join(trimEach(want.Rows), "\n"), "\n")
		col, row := got.Cursor()
		if got.Text() != wantText || row != want.Row || col != min(want.Col, s.cols-1) {
			if bad++; bad > 5 {
				t.Fatal("and more")
			}
			t.Errorf("%dx%d %q\ngot  %q at %d,%d\nwant %q at %d,%d", s.cols, s.rows, s.data, got.Text(), col, row, wantText, want.Col, want.Row)
		}
	}
}

func trimEach(rows []string) []string {
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " ")
	}
	return rows
}

type stream struct {
	cols, rows int
	data       []byte
}

// pieces are what streams are made of; %d is a small number.
var pieces = []string{
	"a", "bc", "hello world", " ", "\r\n", "\r\n", "\n", "\r", "\b", "\t", "世界", "é", "\x0e", "\x0f", "\x1b(0", "\x1b(B", "\x1b)0",
	"\x1b[%dA", "\x1b[%dB", "\x1b[%dC", "\x1b[%dD", "\x1b[%dE", "\x1b[%dF", "\x1b[%dG", "\x1b[%d;%dH", "\x1b[%d;%df", "\x1b[%dd", "\x1b[%d`",
	"\x1b[%da", "\x1b[%de", "\x1b[%dI", "\x1b[%dZ", "\x1b[%d@", "\x1b[%dP", "\x1b[%dX", "\x1b[%dL", "\x1b[%dM", "\x1b[%dS", "\x1b[%dT", "\x1b[%db",
	"\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[%d;%dr", "\x1b[r", "\x1b7", "\x1b8", "\x1b[s", "\x1b[u", "\x1bD", "\x1bE",
	"\x1bM", "\x1bH", "\x1b[g", "\x1b[3g", "\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l",
	"\x1b[?47h", "\x1b[?47l", "\x1b[31;1m", "\x1b[38:2::1:2:3m", "\x1b[m", "\x1b]0;a title\x07", "\x1b]8;;http://x\x1b\\", "\x1bP1$qm\x1b\\", "\x1b_x\x1b\\",
	"\x1b[?25l", "\x1b[c", "\x1b[6n", "\x1b=", "\x1b>", "\x1b[!p", "\x1bc", "\x1b[", "\x1b[12", "\x18", "\x1b", "\x1b[>4;2m", "\x1b[?2004h", "\x1b[1;2;3;4;5z",
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "\a", "\x1b#3", "\x1b[ q", "\x1b[1 q", "\x1b[?5W", "\x1b[<u", "\x1b[=1u", "\x1b%%G",
}

// Kinds of pieces that do not go together, because xterm.js differs from other terminals: each of its screens has its own tab stops, and
// a saved cursor moves with the lines that scroll away, of which the alternate screen has none. What combines with no character, and
// relative moves in origin mode, are left out for the same reason; screen_test.go has them.
var kinds = [][]string{
	{"\x1bH", "\x1b[g", "\x1b[3g"},
	{"\x1b[?47h", "\x1b[?47l", "\x1bc"},
	{"\x1b7", "\x1b8", "\x1b[s", "\x1b[u"},
	{"\x0e", "\x0f", "\x1b(0", "\x1b(B", "\x1b)0"}, // of which it saves only the one in use
	{"\x1b[?7l"}, // with it, half a wide character can be left over
	{"世界"},
}

func randomStream(rng *rand.Rand) stream {
	s := stream{cols: 2 + rng.IntN(20), rows: 2 + rng.IntN(8)}
	kind := rng.IntN(len(kinds))
	if kind == 2 {
		s.data = append(s.data, "\x1b[?1049h"...)
	}
	for range 1 + rng.IntN(40) {
		p := pieces[rng.IntN(len(pieces))]
		if i := slices.IndexFunc(kinds, func(k []string) bool { return slices.Contains(k, p) }); i >= 0 && i != kind {
			continue
		}
		p = strings.ReplaceAll(p, "%%", "%")
		for strings.Contains(p, "%d") {
			p = strings.Replace(p, "%d", fmt.Sprint(rng.IntN(12)), 1)
		}
		s.data = append(s.data, p...)
	}
	return s
}

func runXterm(t *testing.T, dir string, in *bytes.Buffer) []*xtermScreen {
	t.Helper()
	script, err := filepath.Abs("testdata/xterm.cjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", script)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var all []*xtermScreen
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s *xtermScreen
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
