package policy

import "tether/agent/command"

// ListLines are the numbers of the lines of the built-in lists that find the
// command.
func ListLines(c command.Command) []int {
	var met []int
	n := 0
	for _, group := range ownLists {
		for _, p := range group.patterns {
			if p.fits(c, false) == alike {
				met = append(met, n)
			}
			n++
		}
	}
	return met
}

// AllListLines are the first words of those lines.
func AllListLines() []string {
	var all []string
	for _, group := range ownLists {
		for _, p := range group.patterns {
			all = append(all, p.argv[0][0])
		}
	}
	return all
}
