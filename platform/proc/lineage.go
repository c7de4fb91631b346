package proc

import "slices"

// maxLineage bounds the ancestors that Lineage follows. A longer chain is deliberate.
const maxLineage = 64

// Ancestor is a process of a lineage.
type Ancestor struct {
	Info
	// Terminals and Agents come from the marks in its environment, see Tag and AgentTag; they are empty if environments are unreliable or this
	// one cannot be read. On Windows Agents are those in whose jobs it is, see AgentJob.
	Terminals, Agents []string
	// Argv is its arguments, or its program alone where they cannot be read; nil where neither can.
	Argv []string
	// Exe is the file that it runs, "" where that cannot be read, and on systems other than Linux.
	Exe string
}

// Lineage returns the process with this number and its ancestors, nearest first, as far as they can be seen: one that cannot be read ends
// it. One that has left its parent and its session and cleared its environment has no lineage that leads anywhere.
func Lineage(pid int) []Ancestor {
	look, marks := lineageLook(), lineageMarks()
	var all []Ancestor
	for pid > 0 && len(all) < maxLineage {
		p, err := look(pid)
		if err != nil || slices.ContainsFunc(all, func(a Ancestor) bool { return a.Pid == p.Pid }) {
			break
		}
		a := Ancestor{Info: p, Argv: argvOf(pid), Exe: exeOf(pid)}
		a.Terminals, a.Agents = marks(pid)
		all = append(all, a)
		pid = p.Parent
	}
	return all
}
