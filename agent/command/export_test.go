package command

import (
	"maps"
	"slices"
)

// Tables of what is known, for tests that none of it is forgotten.
var (
	Wrappers     = slices.Sorted(maps.Keys(wrappers))
	Openers      = func() []string { return slices.Sorted(maps.Keys(openers)) }
	Interpreters = slices.Sorted(maps.Keys(interpreters))
	Aliases      = sameAs
)

// WrapperSkips is how many operands come before the command.
func WrapperSkips(name string) int { return wrappers[name].skip }

// CodeOptions are the options of an interpreter that give code.
func CodeOptions(name string) []string { return interpreters[name].code }

// ParseOptions parses the words with the options of a wrapper, and returns
// "name=value" for each option that was met, and the operands.
func ParseOptions(wrapper string, words ...string) (met, operands []string) {
	args := make([]Word, len(words))
	for i, w := range words {
		args[i] = Word{w, w != "$X"}
	}
	options, rest := wrappers[wrapper].parse(args)
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
