// Package proc handles processes beyond the one child that os/exec knows: their descent,
// the terminal to which they belong, and how to end all of them. It also starts processes
// that outlive their parent.
//
// It is not a process monitor: nothing is cached, each call examines the system again.
//
//	leader, _ := proc.Lookup(pid)
//	err := proc.Tree{Leader: leader.ID, Tag: proc.Tag(id)}.Kill(ctx, 2*time.Second)
package proc

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// TagVar is the environment variable that marks the processes of a terminal. Its value is
// the terminal's id. A child inherits it through any number of forks and new sessions, so
// it finds processes that ppid and session no longer lead to.
const TagVar = "TETHER_TERMINAL"

// AgentVar is the environment variable that says for which agent a program was started:
// its value is the agent's principal. Like TagVar it is inherited; unlike it, it says so
// also where nobody knows the terminal any more.
const AgentVar = "TETHER_AGENT"

// ErrUnsupported is returned by Tagged where the environments of processes say nothing.
var ErrUnsupported = errors.New("processes cannot be identified by their environment on this system")

// ID names one process unambiguously for as long as the system runs: numbers are reused,
// numbers with a start time are not.
type ID struct {
	Pid   int
	Start uint64 // when it started: clock ticks since boot on Linux, microseconds since 1970 on macOS, 100 ns since 1601 on Windows
}

// Started returns when the process started, as exactly as the system tells; the zero time
// if Start is 0.
func (id ID) Started() time.Time {
	if id.Start == 0 {
		return time.Time{}
	}
	return started(id.Start)
}

// Info is one row of the process table at the moment it was read.
type Info struct {
	ID
	Parent  int  // pid of the parent
	Group   int  // process group, 0 on Windows
	Session int  // session, 0 when it could not be read and on Windows
	TTY     int  // its controlling terminal, as the system numbers it; 0 when it has none and on Windows
	Front   int  // process group in the foreground of that terminal, or 0
	Stopped bool // by a signal or a debugger; never on Windows
	Zombie  bool // has ended, but its parent has not waited for it yet; on Windows, handles of it are still open
}

// Tag returns the environment entry that marks the processes of the terminal with this
// id.
func Tag(id string) string { return TagVar + "=" + id }

// AgentTag returns the environment entry that marks processes that an agent started.
func AgentTag(principal string) string { return AgentVar + "=" + principal }

// FindTag returns the last entry of env that marks a terminal, or "".
func FindTag(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if strings.HasPrefix(env[i], TagVar+"=") {
			return env[i]
		}
	}
	return ""
}

// WithoutTag returns env without the entries that mark a terminal or an agent,
// VendorMarks included.
func WithoutTag(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		return strings.HasPrefix(e, TagVar+"=") || strings.HasPrefix(e, AgentVar+"=") || vendorMark(e)
	})
}

// List returns every process of the system that can be seen. The result is not a
// consistent picture: processes may have come and gone while it was read.
func List() ([]Info, error) {
	var all []Info
	_, err := scan(func(p Info) { all = append(all, p) })
	return all, err
}

// Lookup returns the process that has this number now.
func Lookup(pid int) (Info, error) { return lookup(pid) }

// Tagged returns the processes of our user that were started with this entry in their
// environment, see Tag. It is how strays of a daemon that was killed are found. It
// returns ErrUnsupported on macOS, where environments cannot be relied on, and on
// Windows, where a killed daemon leaves none, see Job.
func Tagged(tag string) ([]Info, error) {
	if !hasTags {
		return nil, ErrUnsupported
	}
	var some []Info
	_, err := scan(func(p Info) {
		if yes, _ := tagged(p.Pid, tag); yes && !p.Zombie && mine(p) {
			some = append(some, p)
		}
	})
	return some, err
}

// Descendants returns the processes of all that descend from root, children before
// grandchildren, without root itself.
func Descendants(all []Info, root int) []Info {
	children := make(map[int][]Info, len(all))
	for _, p := range all {
		if p.Pid != p.Parent {
			children[p.Parent] = append(children[p.Parent], p)
		}
	}
	var found []Info
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			if !seen[p.Pid] {
				seen[p.Pid] = true
				found = append(found, p)
				queue = append(queue, p.Pid)
			}
		}
	}
	return found
}
