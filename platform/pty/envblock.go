package pty

import (
	"maps"
	"slices"
	"strings"
)

// lookupFold returns the value of an environment variable as Windows looks it up: without
// regard to case, the last one if there are several; ok is false if there is none.
func lookupFold(env []string, name string) (value string, ok bool) {
	for _, e := range slices.Backward(env) {
		if n, v, found := cutEntry(e); found && strings.EqualFold(n, name) {
			return v, true
		}
	}
	return "", false
}

// cutEntry cuts NAME=value. Windows has hidden variables whose names begin with the sign
// itself, such as =C:.
func cutEntry(e string) (name, value string, ok bool) {
	if e == "" {
		return "", "", false
	}
	name, value, ok = strings.Cut(e[1:], "=")
	return e[:1] + name, value, ok
}

// foldEnv returns env as Windows wants it: one entry per name without regard to case, the
// last one, and sorted by name. SystemRoot is taken from this process if it is missing:
// without it programs cannot even load their libraries. Entries without a name, or with a
// NUL byte, are left out.
func foldEnv(env []string, systemRoot string) []string {
	last := map[string]string{}
	for _, e := range env {
		if name, _, ok := cutEntry(e); ok && name != "=" && !strings.Contains(e, "\x00") {
			last[strings.ToUpper(name)] = e
		}
	}
	if _, ok := last["SYSTEMROOT"]; !ok && systemRoot != "" {
		last["SYSTEMROOT"] = "SystemRoot=" + systemRoot
	}
	out := make([]string, 0, len(last))
	for _, name := range slices.Sorted(maps.Keys(last)) {
		out = append(out, last[name])
	}
	return out
}
