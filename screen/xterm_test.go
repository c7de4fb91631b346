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

	"tether/internal/testkit"
	"tether/screen"
)

// xtermEnv names a directory in which "npm install @xterm/headless" was run.
const xtermEnv = "TETHER_XTERM"

// part is a piece of a stream: bytes, or a new size.
type part struct {
	data       []byte
	cols, rows int
}

// stream is what a terminal of a size gets.
type stream struct {
	cols, rows int
	parts      []part
}

// line is the stream as testdata/xterm.cjs reads it.
func (s *stream) line() string {
	b := fmt.Sprintf("%d %d", s.cols, s.rows)
	var data []byte
	flush := func() {
		if len(data) > 0 {
			b += " " + base64.StdEncoding.EncodeToString(data)
		}
		data = nil
	}
	for _, p := range s.parts {
		if data = append(data, p.data...); p.data == nil {
			flush()
			b += fmt.Sprintf(" =%dx%d", p.cols, p.rows)
		}
	}
	flush()
	return b
}

// String is the stream for people.
func (s *stream) String() string {
	b := fmt.Sprintf("%dx%d", s.cols, s.rows)
	for _, p := range s.parts {
		if p.data != nil {
			b += fmt.Sprintf(" %+q", p.data)
		} else {
			b += fmt.Sprintf(" =%dx%d", p.cols, p.rows)
		}
	}
	return b
}

// feed writes the stream to a screen.
func (s *stream) feed(to *screen.Screen) {
	for _, p := range s.parts {
		if p.data != nil {
			to.Write(p.data)
		} else {
			to.Resize(p.cols, p.rows)
		}
	}
}

// pieces are what streams are made of; %d is a small number.
var pieces = []string{
	"a", "bc", "hello world", " ", "\r\n", "\r\n", "\n", "\r", "\b", "\t", "世界", "é", "ae\u0301", "🙂", "✓ │", "\x0e", "\x0f", "\x1b(0", "\x1b(B", "\x1b)0",
	"\x1b[%dA", "\x1b[%dB", "\x1b[%dC", "\x1b[%dD", "\x1b[%dE", "\x1b[%dF", "\x1b[%dG", "\x1b[%d;%dH", "\x1b[%d;%df", "\x1b[%dd", "\x1b[%d`",
	"\x1b[%da", "\x1b[%de", "\x1b[%dI", "\x1b[%dZ", "\x1b[%d@", "\x1b[%dP", "\x1b[%dX", "\x1b[%dL", "\x1b[%dM", "\x1b[%dS", "\x1b[%dT", "x\x1b[%db",
	"\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[%d;%dr", "\x1b[r", "\x1b7", "\x1b8", "\x1b[s", "\x1b[u", "\x1bD", "\x1bE",
	"\x1bM", "\x1bH", "\x1b[g", "\x1b[3g", "\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l", "\x1b[?45h", "\x1b[?45l",
	"\x1b[?47h", "\x1b[?47l", "\x1b[?1049h", "\x1b[?1049l", "\x1b[31;1m", "\x1b[38:2::1:2:3m", "\x1b[m", "\x1b[48;5;%dm", "\x1b[7m", "\x1b[4:3;58;2;1;2;3m", "\x1b[4m",
	"\x1b[24m", "\x1b[9;53m", "\x1b[44m", "\x1b[49m", "\x1b[0;3%dm", "\x1b[97;2;3;5m", "\x1b]0;a title\x07", "\x1b]8;;http://x\x1b\\", "\x1b]8;id=a;http://y\x1b\\",
	"\x1b]8;;\x1b\\", "\x1bP1$qm\x1b\\", "\x1b_x\x1b\\",
	"\x1b[?25l", "\x1b[?25h", "\x1b[c", "\x1b[6n", "\x1b=", "\x1b>", "\x1b[!p", "\x1bc", "\x1b[", "\x1b[12", "\x18", "\x1b", "\x1b[>4;2m", "\x1b[?2004h", "\x1b[1;2;3;4;5z",
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "\a", "\x1b#3", "\x1b#8", "\x1b[ q", "\x1b[1 q", "\x1b[?5W", "\x1b[<u", "\x1b[=1u", "\x1b%%G", "\x1b[?1h", "\x1b[?1l", "\x1b[?1000h",
	"\x1b[?1003;1006h", "\x1b[?1004h", "\x1b[20h", "\x1b[20l", "\x1b[1\"q", "\x1b[2\"q", "\x1b[?J", "\x1b[?1K", "\x1b[%d @", "\x1b[%d A", "\x1b[%d'}", "\x1b[%d'~",
}

// Kinds of pieces that do not go together with others, because what a terminal makes of them is not known from what it shows, or
// xterm.js differs from other terminals. A stream has pieces of at most one of them.
var kinds = [][]string{
	{"\x1b[?7l"}, // with it, half a wide character can be left over
	{"\x1b[?6h", "\x1b[?6l"},
	// A saved cursor has only the set of characters that is used, and of underlines and links only that there are some.
	{"\x1b7", "\x1b8", "\x1b[s", "\x1b[u", "\x1b[?1049h", "\x1b[?1049l"},
	{"\x0e", "\x0f", "\x1b(0", "\x1b(B", "\x1b)0"},
	{"\x1b[4:3;58;2;1;2;3m", "\x1b[4m", "\x1b]8;;http://x\x1b\\", "\x1b]8;id=a;http://y\x1b\\"},
}

// alternate shows the alternate screen. If the number of rows became less before, xterm.js 6.0.0 keeps lines above it.
var alternate = []string{"\x1b[?47h", "\x1b[?1049h"}

// randomStream is what a program may print, with changes of the size where sizes is true.
func randomStream(rng *rand.Rand, sizes bool) stream {
	s := stream{cols: 2 + rng.IntN(20), rows: 2 + rng.IntN(8)}
	kind, shrinks := rng.IntN(len(kinds)), rng.IntN(2) == 0
	now, rows := screen.NewState(s.cols, s.rows), s.rows
	for range 1 + rng.IntN(40) {
		if sizes && rng.IntN(12) == 0 {
			// Lines that become too narrow are left out: xterm.js 6.0.0 without lines above the screen loses count of the rows of the main
			// screen then, or throws, and keeps what is out of sight of the alternate one.
			if p := (part{cols: 2 + rng.IntN(20), rows: 2 + rng.IntN(8)}); !now.Breaks(p.cols) && (shrinks || p.rows >= rows) {
				rows = p.rows
				s.parts = append(s.parts, p)
				now.Resize(p.cols, p.rows)
			}
			continue
		}
		p := pieces[rng.IntN(len(pieces))]
		if i := slices.IndexFunc(kinds, func(k []string) bool { return slices.Contains(k, p) }); i >= 0 && i != kind || sizes && shrinks && slices.Contains(alternate, p) {
			continue
		}
		p = strings.ReplaceAll(p, "%%", "%")
		for strings.Contains(p, "%d") {
			p = strings.Replace(p, "%d", fmt.Sprint(rng.IntN(12)), 1)
		}
		s.parts = append(s.parts, part{data: []byte(p)})
		now.Write([]byte(p))
	}
	return s
}

// xterm returns what xterm.js shows of streams, nil where it gives up.
func xterm(t *testing.T, streams []stream) []*screen.Dump {
	t.Helper()
	dir := os.Getenv(xtermEnv)
	if dir == "" {
		t.Skipf("needs node and @xterm/headless: npm install @xterm/headless@6.0.0 somewhere and set %s to that directory", xtermEnv)
	}
	var in bytes.Buffer
	fmt.Fprintln(&in, screen.Widths())
	for i := range streams {
		fmt.Fprintln(&in, streams[i].line())
	}
	script, err := filepath.Abs("testdata/xterm.cjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", script)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var all []*screen.Dump
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var d *screen.Dump
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	if len(all) != len(streams) {
		t.Fatalf("xterm.js showed %d streams of %d", len(all), len(streams))
	}
	return all
}

// differ says in what two screens differ, "" if in nothing.
func differ(got, want *screen.Dump) string {
	var b strings.Builder
	for i := range want.Rows {
		if i >= len(got.Rows) || got.Rows[i] != want.Rows[i] {
			fmt.Fprintf(&b, "row %d\n got %s\nwant %s\n", i, got.Rows[min(i, len(got.Rows)-1)], want.Rows[i])
		}
	}
	if got.Col != want.Col || got.Row != want.Row {
		fmt.Fprintf(&b, "cursor %d,%d want %d,%d\n", got.Col, got.Row, want.Col, want.Row)
	}
	if got.Modes != want.Modes {
		fmt.Fprintf(&b, "modes\n got %s\nwant %s\n", got.Modes, want.Modes)
	}
	if got.Title != want.Title {
		fmt.Fprintf(&b, "title %q want %q\n", got.Title, want.Title)
	}
	return b.String()
}

// TestReplay cuts random streams anywhere: what the first half left, as bytes, and the second half make the screen of the whole stream.
func TestReplay(t *testing.T) {
	for round := range testkit.Rounds(t, 1, 100) {
		replayed(t, rand.New(rand.NewPCG(5, uint64(3+round))))
	}
}

func replayed(t *testing.T, rng *rand.Rand) {
	t.Helper()
	const joins = 10
	var whole, late []stream
	for i := range testkit.Load(1000, 250) {
		s := randomStream(rng, i%2 == 1)
		whole = append(whole, s)
		for range joins {
			late = append(late, s.joinAt(rng))
		}
	}
	bad, known := 0, 0
	all := xterm(t, whole)
	for i, got := range xterm(t, late) {
		want := all[i/joins]
		if want == nil || got == nil {
			continue
		}
		known++
		if d := differ(got, want); d != "" {
			if bad++; bad <= 5 {
				t.Errorf("%s\nlate %s\n%s", &whole[i/joins], &late[i], d)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, known)
	}
	if known < len(late)*9/10 {
		t.Errorf("xterm.js showed only %d streams of %d", known, len(late))
	}
}

// TestRecordings is TestReplay with what programs have printed: vim, less, htop, tmux and one of Bubble Tea.
func TestRecordings(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 4))
	files, err := filepath.Glob("../agent/redact/testdata/screens/*.raw")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := stream{80, 24, []part{{data: data}}}
		all := []stream{s}
		for range testkit.Load(100, 30) {
			to := s
			to.parts = []part{{data: data[:rng.IntN(len(data))]}}
			all = append(all, to, to.joinAt(rng), s.joinAt(rng))
		}
		shown := xterm(t, all)
		for i := 1; i < len(shown); i += 3 {
			here := screen.New(80, 24)
			all[i].feed(here)
			got := here.Dump()
			for _, d := range []string{differ(&got, shown[i]), differ(shown[i+1], shown[i]), differ(shown[i+2], shown[0])} {
				if d != "" {
					t.Fatalf("%s, %d bytes of it: %s", file, len(all[i].parts[0].data), d)
				}
			}
		}
	}
}

// joinAt is the stream for somebody who joins at a random offset: what the screen is there, and the rest.
func (s *stream) joinAt(rng *rand.Rand) stream {
	length := 0
	for _, p := range s.parts {
		length += len(p.data)
	}
	cut := rng.IntN(length + 1)
	state := screen.NewState(s.cols, s.rows)
	for i, p := range s.parts {
		if p.data == nil {
			state.Resize(p.cols, p.rows)
			continue
		}
		if n := len(p.data); cut > n {
			cut -= n
			state.Write(p.data)
			continue
		}
		state.Write(p.data[:cut])
		late := stream{parts: []part{{data: state.Replay()}, {data: append([]byte{}, p.data[cut:]...)}}}
		late.cols, late.rows = state.Size()
		late.parts = append(late.parts, s.parts[i+1:]...)
		return late
	}
	return *s
}

// TestXterm compares random streams with what xterm.js shows: each cell with its attributes, the cursor, modes and title.
func TestXterm(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	var all []stream
	for i := range 2000 {
		all = append(all, randomStream(rng, i%2 == 1))
	}
	bad, known := 0, 0
	for i, want := range xterm(t, all) {
		if want == nil {
			continue
		}
		known++
		s := screen.New(all[i].cols, all[i].rows)
		all[i].feed(s)
		got := s.Dump()
		if d := differ(&got, want); d != "" {
			if bad++; bad <= 5 {
				t.Errorf("%s\n%s", &all[i], d)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d differ", bad, len(all))
	}
	if known < len(all)*9/10 {
		t.Errorf("xterm.js showed only %d streams of %d", known, len(all))
	}
}

// TestAdvanceXterm is TestXterm for Advance, at the conditions under which it leaps.
func TestAdvanceXterm(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 2))
	var all []stream
	for range 200 {
		all = append(all, steps(rng))
	}
	bad, known := 0, 0
	for i, want := range xterm(t, all) {
		if want == nil {
			continue
		}
		known++
		s := screen.NewState(all[i].cols, all[i].rows)
		for _, p := range all[i].parts {
			if p.data == nil {
				s.Resize(p.cols, p.rows)
			} else {
				s.Advance(p.data)
			}
		}
		got := s.Dump()
		if d := differ(&got, want); d != "" {
			if bad++; bad <= 3 {
				t.Errorf("stream %d: %dx%d\n%s", i, all[i].cols, all[i].rows, d)
			}
		}
	}
	if bad > 0 || known < len(all)*9/10 {
		t.Errorf("%d of %d differ; xterm.js showed %d of %d", bad, known, known, len(all))
	}
}
