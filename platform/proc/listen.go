package proc

import (
	"net/netip"
	"slices"
)

// Listener is a TCP socket that a process listens on.
type Listener struct {
	Pid  int
	Addr netip.AddrPort // the address to which it is bound; an unspecified address stands for all addresses
}

// Terminal names a terminal whose processes are looked for. Linux finds them by the Tag
// of its ID in their environments. On other systems they are the descendants of its
// program, and on macOS also the members of its session: a process that has left both is
// missed.
type Terminal struct {
	ID  string
	Pid int // process number of its program, which must not have ended
	// Unmarked says that its processes do not have the tag, since another program has
	// started them: then Linux, too, finds them as other systems do.
	Unmarked bool
}

// Listeners returns the TCP sockets on which the terminals' processes listen, by ID; a
// process inside several terminals counts for each. It looks at every process of this
// user, which takes some milliseconds, on macOS some hundred, and 5 s at most.
func Listeners(terminals []Terminal) (map[string][]Listener, error) { return listeners(terminals) }

// Held is a TCP socket on which a process of this user listens.
type Held struct {
	Listener
	// In are the IDs of those of the terminals that the process is in, the innermost last
	// where the system tells.
	In []string
	// Marks are the IDs of all terminals that its environment names (see Tag), also of
	// those that are not looked for; nil where environments say nothing.
	Marks []string
}

// AllListeners returns the TCP sockets on which this user's processes listen, each once
// for each process that has it open. It takes as long as Listeners does.
func AllListeners(terminals []Terminal) ([]Held, error) { return allListeners(terminals) }

// Directories returns the working directories of processes, by their numbers, as far as
// they may be looked at. On macOS it may take 5 s.
func Directories(pids []int) map[int]string {
	if len(pids) == 0 {
		return nil
	}
	return directories(pids)
}

// Bound is a TCP socket that listens on a certain port.
type Bound struct {
	Addr netip.Addr // as in Listener
	Own  bool       // a process of one of the terminals has it open
}

// OnPort returns the sockets that listen on a TCP port, whoever has them open, as far as
// the system shows them. It takes as long as Listeners does, and less if there are none.
func OnPort(port int, terminals ...Terminal) ([]Bound, error) { return onPort(port, terminals) }

// Listens reports whether a process of the terminal listens on a TCP port. It takes as
// long as OnPort does.
func Listens(t Terminal, port int) (bool, error) {
	all, err := onPort(port, []Terminal{t})
	return slices.ContainsFunc(all, func(b Bound) bool { return b.Own }), err
}

// owners are the terminals that each process is in, by its number, as far as descent and
// session tell.
func owners(all []Info, terminals []Terminal) map[int][]string {
	in := map[int][]string{}
	for _, t := range terminals {
		if t.Pid <= 1 {
			continue // has not been started here, or has ended
		}
		in[t.Pid] = append(in[t.Pid], t.ID)
		roots := []int{t.Pid}
		for _, p := range all {
			if p.Session == t.Pid && p.Pid != t.Pid {
				roots = append(roots, p.Pid)
			}
		}
		for _, root := range roots {
			if !slices.Contains(in[root], t.ID) {
				in[root] = append(in[root], t.ID)
			}
			for _, p := range Descendants(all, root) {
				if !slices.Contains(in[p.Pid], t.ID) {
					in[p.Pid] = append(in[p.Pid], t.ID)
				}
			}
		}
	}
	return in
}

// sorted assigns sockets to their terminals, each once.
func sorted(sockets []Listener, in map[int][]string) map[string][]Listener {
	found := map[string][]Listener{}
	for _, l := range sockets {
		for _, id := range in[l.Pid] {
			if !slices.Contains(found[id], l) {
				found[id] = append(found[id], l)
			}
		}
	}
	return found
}
