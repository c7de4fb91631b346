package proc

import "slices"

// maxLineage bounds the ancestors that Lineage follows. A longer chain is deliberate.
const maxLineage = 64

// Ancestor is a process of a lineage.
type Ancestor struct {
	Info
	Marks
	// Argv is its arguments, or its program alone where they cannot be read; nil where
	// neither can.
	Argv []string
	// Exe is the file that it runs, "" where that cannot be read. On macOS it is the name
	// by which it was started, perhaps a link's.
	Exe string
}

// Marks are those in the environment of a process: the values of TagVar and AgentVar, and
// entries of VendorMarks, NAME=value. They are empty if environments are unreliable or
// this one cannot be read. On Windows Agents are those in whose jobs the process is, see
// AgentJob. Tmux and Pane are the values of TMUX and TMUX_PANE.
type Marks struct {
	Terminals, Agents, Vendors []string
	Tmux, Pane                 string
}

// Lineage returns the process with this number and its ancestors, nearest first, as far
// as they can be seen: one that cannot be read ends it. One that has left its parent and
// its session and cleared its environment has no lineage that leads anywhere.
func Lineage(pid int) []Ancestor {
	look, marksOf := lineageLook(), lineageMarks()
	var all []Ancestor
	for pid > 0 && len(all) < maxLineage {
		p, err := look(pid)
		if err != nil || slices.ContainsFunc(all, func(a Ancestor) bool { return a.Pid == p.Pid }) {
			break
		}
		all = append(all, Ancestor{Info: p, Marks: marksOf(pid), Argv: argvOf(pid), Exe: exeOf(pid)})
		pid = p.Parent
	}
	return all
}
