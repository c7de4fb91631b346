//go:build !linux

package proc

import "slices"

// listeners asks the system for all sockets before it asks for the processes: a program
// that has just begun to listen is then there.
func listeners(terminals []Terminal) (map[string][]Listener, error) {
	some, err := sockets()
	if err != nil || len(some) == 0 {
		return nil, err
	}
	all, err := List()
	if err != nil {
		return nil, err
	}
	return sorted(some, owners(all, terminals)), nil
}

func allListeners(terminals []Terminal) (some []Held, err error) {
	sockets, err := sockets()
	if err != nil || len(sockets) == 0 {
		return nil, err
	}
	all, err := List()
	if err != nil {
		return nil, err
	}
	in := owners(all, terminals)
	known := map[int]bool{} // whether a process is this user's
	found := map[Listener]bool{}
	for _, l := range sockets {
		own, looked := known[l.Pid]
		if !looked {
			own = mine(Info{ID: ID{Pid: l.Pid}})
			known[l.Pid] = own
		}
		if own && !found[l] {
			found[l] = true
			some = append(some, Held{Listener: l, In: in[l.Pid]})
		}
	}
	return some, nil
}

func onPort(port int, terminals []Terminal) (some []Bound, err error) {
	sockets, err := sockets()
	if err != nil {
		return nil, err
	}
	sockets = slices.DeleteFunc(sockets, func(l Listener) bool { return int(l.Addr.Port()) != port })
	if len(sockets) == 0 {
		return nil, nil
	}
	all, err := List()
	if err != nil {
		return nil, err
	}
	in := owners(all, terminals)
	for _, l := range sockets {
		some = append(some, Bound{l.Addr.Addr(), len(in[l.Pid]) > 0})
	}
	return some, nil
}
