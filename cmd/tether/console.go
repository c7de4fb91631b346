package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
)

// printJSON writes v as one indented document.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// tabbed is a table on standard output.
type tabbed struct {
	*tabwriter.Writer
	out *bufio.Writer // tabwriter writes each cell
}

// table begins a table with the names of its columns, separated by tabs. The caller
// flushes it.
func (a *app) table(columns string) tabbed {
	out := bufio.NewWriterSize(a.stdout, 32<<10)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, columns)
	return tabbed{w, out}
}

// Flush prints what was written.
func (t tabbed) Flush() error { return errors.Join(t.Writer.Flush(), t.out.Flush()) }

// notice prints a message for the person to standard error. A carriage return at its end
// is for a terminal in raw mode.
func (a *app) notice(format string, args ...any) {
	text, raw := strings.CutSuffix(fmt.Sprintf(format, args...), "\r")
	text = display.Dim(a.stderr, "tether: "+display.PrintableLines(text))
	if raw {
		text += "\r"
	}
	fmt.Fprintln(a.stderr, text)
}

// size returns the size of the person's terminal, or 80x24 if there is none.
func (a *app) size() (cols, rows uint16) {
	for _, f := range []*os.File{a.stdoutFile, a.stdin, a.stderr} {
		if c, r, ok := tty.Size(f); ok {
			return uint16(min(c, 1000)), uint16(min(r, 1000))
		}
	}
	return 80, 24
}

// ask asks a yes-or-no question. An answer that begins with y means yes, and an empty
// answer means the value of otherwise. Any other answer means no. The error at the end of
// input is io.EOF.
func (a *app) ask(ctx context.Context, question string, otherwise bool) (bool, error) {
	fmt.Fprintf(a.stderr, "%s %s ", question, map[bool]string{true: "[Y/n]", false: "[y/N]"}[otherwise])
	line, err := readLine(ctx, a.stdin)
	if err != nil {
		fmt.Fprintln(a.stderr)
		return false, err
	}
	answer := strings.TrimSpace(line)
	return otherwise && answer == "" || answer != "" && strings.EqualFold(answer[:1], "y"), nil
}

// maxTyped bounds a line that a person types or gives, in bytes.
const maxTyped = 4 << 10

// readLine reads one line and nothing after it, since later input may be for a terminal
// that is attached next. The error at the end of input is io.EOF. A line of more than
// maxTyped bytes is an error, too. If ctx ends first, a goroutine keeps reading in the
// background, so the program should end.
func readLine(ctx context.Context, f *os.File) (string, error) {
	type result struct {
		line string
		err  error
	}
	read := make(chan result, 1) // 1: the reader ends even when nobody waits any more
	go func() {
		var line []byte
		for b := make([]byte, 1); ; line = append(line, b[0]) {
			n, _ := f.Read(b)
			switch {
			case n == 0 && len(line) == 0:
				read <- result{"", io.EOF}
				return
			case n == 0 || b[0] == '\n':
				read <- result{string(line), nil}
				return
			case len(line) == maxTyped:
				read <- result{"", errors.New("the line is longer than 4 KiB")}
				return
			}
		}
	}()
	select {
	case r := <-read:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// key waits until one of the keys is pressed at the person's terminal, and returns it in
// lower case. ^C, ^D and Esc end the wait as an interrupt does. Other keys do nothing.
func (a *app) key(ctx context.Context, keys string) (rune, error) {
	restore, err := tty.Raw(a.stdin)
	if err != nil {
		return 0, err
	}
	defer restore()
	pressed := make(chan rune, 1) // 1: the reader ends even when nobody waits any more
	go func() {
		for b := make([]byte, 1); ; {
			n, err := a.stdin.Read(b)
			switch r := unicode.ToLower(rune(b[0])); {
			case err != nil || n == 0 || strings.ContainsRune("\x03\x04\x1b", r):
				pressed <- 0
				return
			case strings.ContainsRune(keys, r):
				pressed <- r
				return
			}
		}
	}()
	select {
	case r := <-pressed:
		if r == 0 {
			return 0, exitCode(exitInterrupted)
		}
		return r, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
