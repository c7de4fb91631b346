package proc

import "slices"

// maxLineage bounds how far Lineage looks. Deeper ones are somebody's doing.
const maxLineage = 64

// Ancestor is a process of a lineage.
type Ancestor struct {
	Info
	// Terminals are the ids of the terminals that its environment marks, see Tag; where environments cannot be relied on, none.
	Terminals []string
}

// Lineage returns the process with this number and its ancestors, nearest first, as far as they can be seen. One that has left its
// parent and its session and cleared its environment has no lineage that leads anywhere.
func Lineage(pid int) []Ancestor {
	var all []Ancestor
	for pid > 0 && len(all) < maxLineage {
		p, err := lookup(pid)
		if err != nil || slices.ContainsFunc(all, func(a Ancestor) bool { return a.Pid == p.Pid }) {
			break
		}
		all = append(all, Ancestor{p, terminalsOf(pid)})
		pid = p.Parent
	}
	return all
}
