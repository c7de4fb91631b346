package progentry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tables returns a TOML text, decoded.
func tables(text []byte) (map[string]any, error) {
	all := map[string]any{}
	if err := toml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("the file is not valid TOML: %w", err)
	}
	return all, nil
}

// appendTable returns the text with a table for the entry at its end.
func (f Format) appendTable(text []byte, name string, e Entry) []byte {
	end := lineEnd(text)
	var b strings.Builder
	fmt.Fprintf(&b, "[%s.%s]\n%s = %s\nargs = %s\n", f.Section, name, f.Style.command(), quote(e.Command), quote(e.Args))
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

// quote returns a string or a list of strings as JSON, which is valid TOML too: basic
// strings of TOML have the escapes of JSON. It also escapes DEL, which TOML does not
// allow. Only for JSON, v may be a map.
func quote(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // cannot fail for strings
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\x7f", `\u007F`)
}

// removeTable returns the text without the table of an entry, the tables below it, and
// the blank lines before them.
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

// tableName returns the name of the table whose header the line is, without blanks and
// quotes, or "" for an array of tables. ok is false if the line is no header.
func tableName(line []byte) (string, bool) {
	text := strings.TrimSpace(string(line))
	if !strings.HasPrefix(text, "[") || strings.HasPrefix(text, "[[") {
		return "", strings.HasPrefix(text, "[[")
	}
	text, _, ok := strings.Cut(text[1:], "]")
	return strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(text), ok
}

// trimBlankLines returns the text without the blank lines at its end.
func trimBlankLines(text []byte) []byte {
	for {
		trimmed := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
		if len(trimmed) > 0 && trimmed[len(trimmed)-1] != '\n' || len(trimmed) == len(text) {
			return text
		}
		text = trimmed
	}
}
