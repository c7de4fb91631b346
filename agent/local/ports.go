package local

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
	"tether/platform/proc"
)

// listening returns the ports on which the programs of running terminals listen.
func listening(terminals ...term.Handle) (map[term.ID][]localapi.Listening, error) {
	found, err := proc.Listeners(running(terminals...))
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

// running returns the terminals that run, as package proc looks for their processes.
func running(terminals ...term.Handle) (some []proc.Terminal) {
	for _, h := range terminals {
		if i := h.Info(); i.Exit == nil {
			some = append(some, processesOf(i))
		}
	}
	return some
}

// processesOf says where to look for a terminal's processes: if it is adopted, in the
// pane, which its own program only reads.
func processesOf(i term.Info) proc.Terminal {
	if i.Adopted != nil && i.Adopted.Pid != 0 {
		return proc.Terminal{ID: string(i.ID), Pid: i.Adopted.Pid, Unmarked: true}
	}
	return proc.Terminal{ID: string(i.ID), Pid: i.Pid}
}

// Listens implements agenttools.Locator.
func (a *agentTerminals) Listens(id string, port int) (yes, known bool) {
	h, err := a.find(id)
	if err != nil {
		return false, false
	}
	yes, err = proc.Listens(processesOf(h.Info()), port)
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
	terminals := running(a.access.List()...)
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
	hosts, err := reachable(all, port)
	if closed, is := errors.AsType[*agenttools.ClosedError](err); is && closed.Other {
		closed.By = a.unseenOn(port)
	}
	return hosts, err
}

// reachable returns the loopback addresses at which nothing but programs of the terminals
// can answer. The socket of one address has priority over one of all addresses, and that
// of IPv6 may accept connections over IPv4.
func reachable(all []proc.Bound, port int) (hosts []string, err error) {
	closed := &agenttools.ClosedError{Port: port}
	for _, host := range agenttools.Loopbacks() {
		at := netip.MustParseAddr(host)
		from := []netip.Addr{at, netip.IPv6Unspecified()}
		if at.Is4() {
			from = []netip.Addr{at, netip.IPv4Unspecified(), netip.IPv6Unspecified()}
		}
		for _, addr := range from {
			some := slices.DeleteFunc(slices.Clone(all), func(b proc.Bound) bool { return b.Addr != addr })
			if len(some) == 0 {
				continue
			}
			if slices.ContainsFunc(some, func(b proc.Bound) bool { return !b.Own }) {
				closed.Other = true
			} else {
				hosts = append(hosts, host)
			}
			break
		}
	}
	if len(hosts) == 0 {
		return nil, closed
	}
	return hosts, nil
}
