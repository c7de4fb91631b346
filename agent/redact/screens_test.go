package redact_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent/redact"
	"tether/internal/testkit/must"
	"tether/screen"
)

// screenPrograms are the programs whose output scripts/record-screens.sh has recorded,
// each with the sequences that do not leave: those that a terminal answers or that vim
// tries out, in their order, each once.
var screenPrograms = []struct {
	name    string
	removed []string
}{
	{"vim", []string{`"\x1b[6n"`, `"\x1bPzz"`, `"\x1b[0%m"`, `"\x1b[>c"`, `"\x1b]10;?\a"`, `"\x1b]11;?\a"`, `"\x1b[?4m"`}},
	{"less", nil},
	{"htop", nil},
	{"tmux", []string{`"\x1b[>c"`, `"\x1b[>q"`, `"\x1b[?7727h"`}}, // the last is a mode of mintty's alone
	{"npm", nil},
	{"tea", []string{`"\x1b]11;?"`, `"\x1b[6n"`}},
}

// filtered is an observer's view of a recording that arrives in pieces, and the parts of
// the recording that are changed in it.
func filtered(t *testing.T, r *redact.Rules, raw []byte) (out []byte, removed []string) {
	t.Helper()
	out = []byte(inPieces(t, r, string(raw), func(string) int { return 1000 }))
	for i := 0; i < len(raw); i++ {
		if raw[i] == out[i] {
			continue
		}
		from := bytes.LastIndexByte(raw[:i+1], 0x1b)
		to := i + 1
		for to < len(raw) && (raw[to] != out[to] || raw[to-1] == 0x1b) {
			to++
		}
		if seq := fmt.Sprintf("%q", raw[from:to]); !strings.Contains(strings.Join(removed, "\n"), seq) {
			removed = append(removed, seq)
		}
		i = to
	}
	return out, removed
}

// At an observer vim, less, htop, tmux and a Bubble Tea program look the same as here: at
// each moment the same characters and cursor. Only sequences that a terminal answers are
// removed, so colours, modes and shapes are the same, too.
func TestScreensStayTheSame(t *testing.T) {
	r := compile(t, redact.Options{Tokens: true, Images: 1 << 20}, "hunter2-value")
	for _, program := range screenPrograms {
		t.Run(program.name, func(t *testing.T) {
			raw := must.Get(os.ReadFile(filepath.Join("testdata", "screens", program.name+".raw")))(t)
			out, removed := filtered(t, r, raw)
			if got, want := strings.Join(removed, "\n"), strings.Join(program.removed, "\n"); got != want {
				t.Errorf("removed\n%s\nwant\n%s", got, want)
			}
			here, there := screen.New(80, 24), screen.New(80, 24)
			for from := 0; from < len(raw); from += 200 {
				to := min(from+200, len(raw))
				here.Write(raw[from:to])
				there.Write(out[from:to])
				col, row := here.Cursor()
				if c, r := there.Cursor(); here.Text() != there.Text() || c != col || r != row {
					t.Fatalf("behind %d bytes the observer sees %q at %d,%d, here it is %q at %d,%d", to, there.Text(), c, r, here.Text(), col, row)
				}
			}
			if program.name != "npm" && (len(raw) < 4<<10 || !bytes.Contains(raw, []byte("\x1b[?1049h"))) { // npm init asks line by line
				t.Errorf("a recording of %d bytes is of no full-screen program", len(raw))
			}
		})
	}
}

// The same at xterm.js, cell by cell: characters, colours, attributes, cursor and modes.
func TestScreensInXterm(t *testing.T) {
	const xtermEnv = "TETHER_XTERM"
	dir := os.Getenv(xtermEnv)
	if dir == "" {
		t.Skipf("needs node and @xterm/headless: npm install @xterm/headless@6.0.0 somewhere and set %s to that directory", xtermEnv)
	}
	r := compile(t, redact.Options{Tokens: true, Images: 1 << 20}, "hunter2-value")
	script := must.Get(filepath.Abs("testdata/screens/cells.cjs"))(t)
	cells := func(data []byte) string {
		cmd := exec.Command("node", script)
		cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
		cmd.Stdin, cmd.Stderr = bytes.NewReader(data), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("node: %v", err)
		}
		return string(out)
	}
	for _, program := range screenPrograms {
		raw := must.Get(os.ReadFile(filepath.Join("testdata", "screens", program.name+".raw")))(t)
		out, _ := filtered(t, r, raw)
		want, got := cells(raw), cells(out)
		if want != got || strings.Count(want, "\n") < 25 {
			t.Errorf("%s: the observer's xterm.js has\n%.3000s\nhere it is\n%.3000s", program.name, got, want)
		}
	}
}
