package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"tether/cmd/tether/internal/display"
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
