package local

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tether/agent/devserver"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
	"tether/platform/proc"
)

// listening returns the ports on which the programs of running terminals listen.
func listening(terminals ...term.Handle) (map[term.ID][]localapi.Listening, error) {
	found, err := proc.Listeners(devserver.Running(terminals...))
	if err != nil {
		return nil, fmt.Errorf("listening ports: %w", err)
	}
	all := map[term.ID][]localapi.Listening{}
	for id, some := range found {
		for _, l := range some {
			all[term.ID(id)] = append(all[term.ID(id)], listeningOf(l))
		}
	}
	for _, some := range all {
		slices.SortFunc(some, func(a, b localapi.Listening) int {
			return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Pid, b.Pid), cmp.Compare(a.Address, b.Address))
		})
	}
	return all, nil
}

func listeningOf(l proc.Listener) localapi.Listening {
	x := localapi.Listening{Port: int(l.Addr.Port()), Address: l.Addr.Addr().String(), Pid: l.Pid}
	if a := l.Addr.Addr(); a.IsLoopback() || a.IsUnspecified() {
		x.URL = fmt.Sprintf("http://localhost:%d", x.Port)
	}
	return x
}

// Listens implements agenttools.Locator.
func (a *agentTerminals) Listens(id string, port int) (yes, known bool) {
	h, err := a.find(id)
	if err != nil {
		return false, false
	}
	yes, err = proc.Listens(devserver.Processes(h.Info()), port)
	return yes, err == nil
}

// Reach implements agenttools.Locator. The person's waits connect to any port of the
// loopback interface. An agent's connect to programs of terminals that it sees, and to
// ports that the person has declared for one: it must not reach through the daemon what
// is closed to it.
func (a *agentTerminals) Reach(port int, url bool) ([]string, error) {
	actor := a.access.Actor()
	if actor == term.User {
		return agenttools.Loopbacks(), nil
	}
	if a.server.noNetwork(actor) {
		return nil, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("%s has no network (network = \"none\"), so it may wait for no port and no URL; wait for a line of output instead", actor)}
	}
	terminals := devserver.Running(a.access.List()...)
	if d := a.server.opts.Declared; d != nil && slices.ContainsFunc(terminals, func(t proc.Terminal) bool { return d.ReadyPort(t.ID) == port }) {
		return agenttools.Loopbacks(), nil
	}
	all, err := proc.OnPort(port, terminals...)
	switch {
	case err != nil && url:
		return nil, &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("this system does not tell which program would get a request to port %d (%v), so agents may not wait for a URL; wait for the port instead", port, err)}
	case err != nil:
		return agenttools.Loopbacks(), nil
	}
	hosts, err := devserver.Reachable(all, port)
	if closed, is := errors.AsType[*agenttools.ClosedError](err); is && closed.Other {
		closed.By = a.unseenOn(port)
	}
	return hosts, err
}
