package local

import (
	"net"
	"strconv"

	"tether/agent/term"
	"tether/agenttools"
	"tether/events"
)

// newEvents returns an actor's events about the terminals that it may see.
func (s *Server) newEvents(t agenttools.Terminals, access term.Access, find *agenttools.Matching) *events.Engine {
	return events.New(events.Options{
		Terminals: t, Machine: s.opts.Machine, Problems: find, Bug: s.toolBug,
		Ports: func() (map[string][]events.Port, error) { return openPorts(access) },
	})
}

// openPorts are the ports on which programs of an actor's terminals listen, each once.
func openPorts(access term.Access) (map[string][]events.Port, error) {
	found, err := listening(access.List()...)
	if err != nil {
		return nil, err
	}
	all := map[string][]events.Port{}
	for id, some := range found {
		for i, l := range some {
			if i > 0 && some[i-1].Port == l.Port {
				continue
			}
			address := l.Address
			if l.URL != "" {
				address = "localhost"
			}
			all[string(id)] = append(all[string(id)], events.Port{Number: l.Port, Address: net.JoinHostPort(address, strconv.Itoa(l.Port))})
		}
	}
	return all, nil
}
