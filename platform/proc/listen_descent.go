//go:build !linux

package proc

import "slices"

// listeners asks the system for all sockets before it asks for the processes: a program that has just begun to listen is then there.
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

func listens(t Terminal, port int) (bool, error) {
	all, err := listeners([]Terminal{t})
	return slices.ContainsFunc(all[t.ID], func(l Listener) bool { return int(l.Addr.Port()) == port }), err
}
