package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Identity changes the tables of known programs by which local callers are told apart.
// Its entries are names of programs, or absolute paths. The daemon uses a change only
// after the person has approved it.
type Identity struct {
	// Mine are programs that are the person's: known agents that are none, and programs
	// below which a terminal is still a sign of a person.
	Mine []string `toml:"mine"`
	// Agents are programs below which everything is an agent's.
	Agents []string `toml:"agents"`
}

// Bounds of Identity.
const (
	maxIdentities = 256  // entries of a list
	maxProgram    = 4096 // bytes of an entry
)

// problems returns the faults of the values.
func (i *Identity) problems() []Problem {
	var all []Problem
	for _, list := range []struct {
		key     string
		entries []string
	}{{"identity.mine", i.Mine}, {"identity.agents", i.Agents}} {
		if len(list.entries) > maxIdentities {
			all = append(all, Problem{Key: list.key, Text: fmt.Sprintf("it has more than %d entries", maxIdentities)})
		}
		for _, entry := range list.entries {
			if text := programProblem(entry); text != "" {
				all = append(all, Problem{Key: list.key, Text: shown(entry) + " " + text})
			}
		}
	}
	for _, entry := range i.Mine {
		if slices.Contains(i.Agents, entry) {
			all = append(all, Problem{Key: "identity.agents", Text: shown(entry) + " is in identity.mine, too"})
		}
	}
	return all
}

// programProblem says why an entry names no program.
func programProblem(entry string) string {
	switch {
	case strings.TrimSpace(entry) != entry || entry == "" || len(entry) > maxProgram || strings.ContainsFunc(entry, unicode.IsControl):
		return "is no name of a program"
	case strings.ContainsAny(entry, `/\`) && !filepath.IsAbs(entry):
		return "must be a name, or an absolute path"
	}
	return ""
}

// String returns the section as the file may have it, on one line.
func (i Identity) String() string {
	list := func(entries []string) string {
		quotes := make([]string, len(entries))
		for n, entry := range entries {
			quotes[n] = quoted(entry)
		}
		return "[" + strings.Join(quotes, ", ") + "]"
	}
	return "[identity] mine = " + list(i.Mine) + ", agents = " + list(i.Agents)
}

// Equal reports whether two sections have the same entries in the same order.
func (i Identity) Equal(o Identity) bool {
	return slices.Equal(i.Mine, o.Mine) && slices.Equal(i.Agents, o.Agents)
}
