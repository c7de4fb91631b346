package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

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

// notice prints a message for the person to standard error. A carriage return at its end is for a terminal in raw mode.
func (a *app) notice(format string, args ...any) {
	text, raw := strings.CutSuffix(fmt.Sprintf(format, args...), "\r")
	text = display.Dim(a.stderr, "tether: "+display.PrintableLines(text))
	if raw {
		text += "\r"
	}
	fmt.Fprintln(a.stderr, text)
}

// size is the person's terminal's, or 80x24.
func (a *app) size() (cols, rows uint16) {
	for _, f := range []*os.File{a.stdout, a.stdin, a.stderr} {
		if c, r, ok := tty.Size(f); ok {
			return uint16(min(c, 1000)), uint16(min(r, 1000))
		}
	}
	return 80, 24
}
