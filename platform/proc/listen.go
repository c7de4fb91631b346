package proc

import "net/netip"

// Listener is a TCP socket that a process listens on.
type Listener struct {
	Pid  int
	Addr netip.AddrPort // the address it is bound to; an unspecified one is all of them
}

// Listeners returns the TCP sockets on which processes listen that were started with a Tag, by the id in it; a process inside several
// terminals counts for each. It looks at every process of this user, which takes some milliseconds. ErrUnsupported as with Listens.
func Listeners() (map[string][]Listener, error) { return allListeners() }

// Listens reports whether a process that was started with this entry in its environment, see Tag, listens on a TCP port. It returns
// ErrUnsupported where sockets cannot be led back to processes yet: macOS and Windows.
func Listens(tag string, port int) (bool, error) { return listens(tag, port) }
