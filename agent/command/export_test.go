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
