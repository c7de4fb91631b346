// Package xterm runs xterm.js, against which tests compare our screens, and makes random
// streams for the comparison.
package xterm

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed xterm.cjs
var script string

// xtermEnv names a directory in which "npm install @xterm/headless" was run.
const xtermEnv = "TETHER_XTERM"

// Dump is the visible state of a screen, as xterm.cjs writes it.
type Dump struct {
	Rows         []string
	Col, Row     int
	Modes, Title string
}

// Part is a part of a stream: bytes or, if Data is nil, a new size.
type Part struct {
	Data       []byte
	Cols, Rows int
}

// Stream is output to a terminal, with the terminal's size at the beginning.
type Stream struct {
	Cols, Rows int
	Parts      []Part
}

// Joined returns the stream of an observer who joins late. data draws the screen of cols
// by rows as it was at the offset after of text. sizes are the later sizes, each as
// offset in text, columns, rows.
func Joined(cols, rows int64, data, text string, after int64, sizes [][3]int64) Stream {
	s := Stream{Cols: int(cols), Rows: int(rows), Parts: []Part{{Data: []byte(data)}}}
	for _, z := range sizes {
		s.Parts = append(s.Parts, Part{Data: []byte(text[after:z[0]])}, Part{Cols: int(z[1]), Rows: int(z[2])})
		after = z[0]
	}
	s.Parts = append(s.Parts, Part{Data: []byte(text[after:])})
	return s
}

// line returns the stream in the form that xterm.cjs reads.
func (s *Stream) line() string {
	b := fmt.Sprintf("%d %d", s.Cols, s.Rows)
	var data []byte
	flush := func() {
		if len(data) > 0 {
			b += " " + base64.StdEncoding.EncodeToString(data)
		}
		data = nil
	}
	for _, p := range s.Parts {
		if data = append(data, p.Data...); p.Data == nil {
			flush()
			b += fmt.Sprintf(" =%dx%d", p.Cols, p.Rows)
		}
	}
	flush()
	return b
}

// String returns the stream in readable form.
func (s *Stream) String() string {
	b := fmt.Sprintf("%dx%d", s.Cols, s.Rows)
	for _, p := range s.Parts {
		if p.Data != nil {
			b += fmt.Sprintf(" %+q", p.Data)
		} else {
			b += fmt.Sprintf(" =%dx%d", p.Cols, p.Rows)
		}
	}
	return b
}

// Show returns the screen that xterm.js shows for each stream, nil where xterm.js throws.
// widths are the ranges of characters that are not one column wide, see Widths. Show
// skips the test if xterm.js is not installed.
func Show(t testing.TB, widths string, streams []Stream) []*Dump {
	t.Helper()
	dir := os.Getenv(xtermEnv)
	if dir == "" {
		t.Skipf("needs node and @xterm/headless: npm install @xterm/headless@6.0.0 somewhere and set %s to that directory", xtermEnv)
	}
	var in bytes.Buffer
	fmt.Fprintln(&in, widths)
	for i := range streams {
		fmt.Fprintln(&in, streams[i].line())
	}
	file := filepath.Join(t.TempDir(), "xterm.cjs")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", file)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	var all []*Dump
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var d *Dump
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

// Differ describes the differences between two screens. It returns "" if there are none.
func Differ(got, want *Dump) string {
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
