// Package xterm shows the screens of xterm.js, by which tests judge our screens, and makes random streams to show.
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

// Dump is all that can be seen of a screen, as xterm.cjs writes it.
type Dump struct {
	Rows         []string
	Col, Row     int
	Modes, Title string
}

// Part is a piece of a stream: bytes, or, if Data is nil, a new size.
type Part struct {
	Data       []byte
	Cols, Rows int
}

// Stream is the output to a terminal of a size.
type Stream struct {
	Cols, Rows int
	Parts      []Part
}

// Joined is the stream of somebody who joins: data draws the screen of a size as it was after so many bytes of text, and sizes are those
// that it got since, each after how many bytes of text, columns and rows.
func Joined(cols, rows int64, data, text string, after int64, sizes [][3]int64) Stream {
	s := Stream{Cols: int(cols), Rows: int(rows), Parts: []Part{{Data: []byte(data)}}}
	for _, z := range sizes {
		s.Parts = append(s.Parts, Part{Data: []byte(text[after:z[0]])}, Part{Cols: int(z[1]), Rows: int(z[2])})
		after = z[0]
	}
	s.Parts = append(s.Parts, Part{Data: []byte(text[after:])})
	return s
}

// line is the stream as xterm.cjs reads it.
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

// String is the stream for people.
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

// Show returns the screens that xterm.js shows for streams, nil where it gives up. widths are the ranges of characters that are not one
// column wide. It skips the test if xterm.js is not installed.
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

// Differ describes the difference of two screens, "" if there is none.
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
