package shellint_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/shellint"
)

// xtermEnv names a directory in which "npm install @xterm/headless" was run.
const xtermEnv = "TETHER_XTERM"

// TestXterm asks xterm.js itself: in random hostile streams it sees the marks that the
// scanner reports, and no marks in the rest.
func TestXterm(t *testing.T) {
	dir := os.Getenv(xtermEnv)
	if dir == "" {
		t.Skipf("needs node and @xterm/headless: npm install @xterm/headless@6.0.0 somewhere and set %s to that directory", xtermEnv)
	}
	rng := rand.New(rand.NewPCG(8, 9))
	for range testkit.Rounds(t, 1, 100) {
		askXterm(t, dir, rng)
	}
}

func askXterm(t *testing.T, dir string, rng *rand.Rand) {
	const streams = 500
	var in bytes.Buffer
	var raws [][]byte
	send := func(b []byte) { fmt.Fprintln(&in, base64.StdEncoding.EncodeToString(b)) }
	var want []int
	for range streams {
		// The space ends a last ESC: xterm.js counts an OSC at the ESC, the scanner once
		// it knows the next byte.
		raw := append(bytes.ToValidUTF8(hostileStream(rng), []byte("\ufffd")), ' ')
		res := scanPieces(t, raw, shellint.Options{}, nil)
		raws = append(raws, raw)
		send(raw)
		n := 0
		for _, m := range modelMarks(raw) {
			if m.ends {
				n++
			}
		}
		want = append(want, n)
		for _, view := range views {
			send(res.without(view...))
		}
	}
	got := runXterm(t, dir, &in)
	for i, raw := range raws {
		answers := got[i*(1+len(views)):]
		if answers[0] != want[i] {
			t.Errorf("%q: xterm.js sees %d marks, the model %d", raw, answers[0], want[i])
		}
		for v := range views {
			if answers[1+v] != 0 {
				t.Errorf("%q without %v still has %d marks", raw, views[v], answers[1+v])
			}
		}
	}
}

func runXterm(t *testing.T, dir string, in *bytes.Buffer) []int {
	t.Helper()
	script := must.Get(filepath.Abs("testdata/xterm.cjs"))(t)
	cmd := exec.Command("node", script)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var counts []int
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var n int
		must.Get(fmt.Sscan(lines.Text(), &n))(t)
		counts = append(counts, n)
	}
	return counts
}
