package local

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/platform/proc"
)

// ports answers with the ports on which a terminal's programs listen.
func (s *Server) ports(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	all, err := listening(h)
	if err != nil {
		return err
	}
	p := localapi.Ports{SchemaVersion: localapi.SchemaVersion, ID: string(h.ID()), Ports: all[h.ID()]}
	if p.Ports == nil {
		p.Ports = []localapi.Listening{}
	}
	return reply(w, p)
}

// listening returns the ports on which the programs of running terminals listen.
func listening(terminals ...term.Handle) (map[term.ID][]localapi.Listening, error) {
	var running []proc.Terminal
	for _, h := range terminals {
		if i := h.Info(); i.Exit == nil {
			running = append(running, proc.Terminal{ID: string(i.ID), Pid: i.Pid})
		}
	}
	found, err := proc.Listeners(running)
	if err != nil {
		return nil, fmt.Errorf("listening ports: %w", err)
	}
	all := map[term.ID][]localapi.Listening{}
	for id, some := range found {
		for _, l := range some {
			x := localapi.Listening{Port: int(l.Addr.Port()), Address: l.Addr.Addr().String(), Pid: l.Pid}
			if a := l.Addr.Addr(); a.IsLoopback() || a.IsUnspecified() {
				x.URL = fmt.Sprintf("http://localhost:%d", x.Port)
			}
			all[term.ID(id)] = append(all[term.ID(id)], x)
		}
	}
	for _, some := range all {
		slices.SortFunc(some, func(a, b localapi.Listening) int {
			return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Pid, b.Pid), cmp.Compare(a.Address, b.Address))
		})
	}
	return all, nil
}
