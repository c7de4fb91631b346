package mcpentry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tables reads a TOML text.
func tables(text []byte) (map[string]any, error) {
	all := map[string]any{}
	if err := toml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("the file is not valid TOML: %w", err)
	}
	return all, nil
}

// appendTable adds a table for the entry at the end of a text.
func appendTable(text []byte, section, name string, e Entry) []byte {
	end := lineEnd(text)
	var b strings.Builder
	fmt.Fprintf(&b, "[%s.%s]\ncommand = %s\nargs = %s\n", section, name, quote(e.Command), quote(e.Args))
	if len(e.Env) > 0 {
		fmt.Fprintf(&b, "env = {")
		for i, name := range names(e.Env) {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s = %s", quote(name), quote(e.Env[name]))
		}
		b.WriteString(" }\n")
	}
	out := bytes.Clone(text)
	if len(out) > 0 {
		if out[len(out)-1] != '\n' {
			out = append(out, end...)
		}
		out = append(out, end...)
	}
	return append(out, strings.ReplaceAll(b.String(), "\n", end)...)
}

// quote is a string or a list of strings as TOML, whose basic strings are escaped as JSON's are.
func quote(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings always can be
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\x7f", `\u007F`)
}

// removeTable removes the table of an entry and those below it from a text, with the blank lines before it.
func removeTable(text []byte, section, name string) []byte {
	var kept []byte
	inside := false
	for line := range bytes.Lines(text) {
		if header, ok := tableName(line); ok {
			inside = header == section+"."+name || strings.HasPrefix(header, section+"."+name+".")
			if inside {
				kept = trimBlankLines(kept)
			}
		}
		if !inside {
			kept = append(kept, line...)
		}
	}
	return kept
}

// tableName is the name of the table that a line begins, without blanks and quotes.
func tableName(line []byte) (string, bool) {
	text := strings.TrimSpace(string(line))
	if !strings.HasPrefix(text, "[") || strings.HasPrefix(text, "[[") {
		return "", strings.HasPrefix(text, "[[")
	}
	text, _, ok := strings.Cut(text[1:], "]")
	return strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(text), ok
}

func trimBlankLines(text []byte) []byte {
	for {
		trimmed := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
		if len(trimmed) > 0 && trimmed[len(trimmed)-1] != '\n' || len(trimmed) == len(text) {
			return text
		}
		text = trimmed
	}
}
