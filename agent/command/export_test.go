package command

import (
	"maps"
	"slices"
)

// The tables, for tests that no row is forgotten.
var (
	Openers      = func() []string { return slices.Sorted(maps.Keys(openers)) }
	Programs     = func() []string { return slices.Sorted(maps.Keys(programs())) }
	Interpreters = slices.Sorted(maps.Keys(interpreters))
	Aliases      = sameAs
)

// Wrappers are the programs of the table that only run their operands.
func Wrappers() []string {
	var all []string
	for name, p := range programs() {
		if p.operands == "cmd" && !p.both && p.names == 1 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return append(all, "env", "command")
}

// WrapperSkips is how many operands come before the command.
func WrapperSkips(name string) int {
	if p := programs()[name]; p != nil {
		return p.skip
	}
	return 0
}

// CodeOptions are the options of an interpreter that give code.
func CodeOptions(name string) []string { return interpreters[name].code }

// ParseOptions parses the words with the options of a wrapper, and returns "name=value"
// for each option that was met, and the operands.
func ParseOptions(wrapper string, words ...string) (met, operands []string) {
	args := make([]Word, len(words))
	for i, w := range words {
		args[i] = Word{w, w != "$X"}
	}
	options, rest := programs()[wrapper].parse(args)
	for _, o := range options {
		met = append(met, o.name+"="+o.value.Text)
	}
	for _, w := range rest {
		operands = append(operands, w.Text)
	}
	return met, operands
}

// Has reports whether there is a finding of that kind.
func (r *Reading) Has(k Kind) bool {
	for _, f := range r.Findings {
		if f.Kind == k {
			return true
		}
	}
	return false
}
