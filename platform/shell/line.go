package shell

import (
	"slices"
	"strings"
)

// Line returns the argv that runs a line in the system's own shell: sh -c, or cmd /c on
// Windows. That is not the person's shell, and it reads no start-up files: programs that
// write such lines rely on the shell that every system has.
func Line(line string) []string { return onLine(line) }

// Merge returns env with the entries of set, NAME=value, in place of entries with the
// same name. The last entry of a name wins. On Windows names that differ only in case are
// equal.
func Merge(env, set []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range slices.Backward(slices.Concat(env, set)) {
		name, _, _ := strings.Cut(e, "=")
		if foldNames {
			name = strings.ToUpper(name)
		}
		if !seen[name] {
			seen[name] = true
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	return out
}
