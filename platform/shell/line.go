package shell

import (
	"slices"
	"strings"
)

// Line returns the argv that runs a line as the system's own shell understands it: sh -c, or cmd /c on Windows. It is not the person's
// shell, and no start-up files are read: programs that write such lines count on the one that is everywhere.
func Line(line string) []string { return onLine(line) }

// Merge returns env with the entries of set, NAME=value, replacing those with the same name. The last of set wins. Names are compared as
// the system does: on Windows without regard to case.
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
