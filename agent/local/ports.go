package local

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"tether/agent/term"
	"tether/platform/proc"
)

// Listening is a TCP port on which a program of a terminal listens.
type Listening struct {
	Port    int    `json:"port"`
	Address string `json:"address"` // that it is bound to
	Pid     int    `json:"pid"`
	// URL is where a browser on this machine finds it if it speaks HTTP; absent if it is bound to an address that is not of this machine alone
	// or all.
	URL string `json:"url,omitempty"`
}

// Ports is the answer to a question for them.
type Ports struct {
	SchemaVersion int         `json:"schema_version"`
	ID            string      `json:"id"`
	Ports         []Listening `json:"ports"`
}

// ports answers with the ports on which a terminal's programs listen.
func (s *Server) ports(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	all, err := listening(h)
	if err != nil {
		return err
	}
	p := Ports{SchemaVersion: SchemaVersion, ID: string(h.ID()), Ports: all[h.ID()]}
	if p.Ports == nil {
		p.Ports = []Listening{}
	}
	return reply(w, p)
}

// listening returns the ports on which the programs of running terminals listen.
func listening(terminals ...term.Handle) (map[term.ID][]Listening, error) {
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
	all := map[term.ID][]Listening{}
	for id, some := range found {
		for _, l := range some {
			x := Listening{Port: int(l.Addr.Port()), Address: l.Addr.Addr().String(), Pid: l.Pid}
			if a := l.Addr.Addr(); a.IsLoopback() || a.IsUnspecified() {
				x.URL = fmt.Sprintf("http://localhost:%d", x.Port)
			}
			all[term.ID(id)] = append(all[term.ID(id)], x)
		}
	}
	for _, some := range all {
		slices.SortFunc(some, func(a, b Listening) int {
			return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Pid, b.Pid), cmp.Compare(a.Address, b.Address))
		})
	}
	return all, nil
}

// Ports returns the ports on which the programs of a terminal listen.
func (c *Client) Ports(ctx context.Context, ref string) (Ports, error) {
	var p Ports
	return p, c.do(ctx, http.MethodGet, terminalPath(ref, "/ports"), nil, &p)
}

// ListPorts is List with the ports on which the terminals' programs listen, if they can be found out.
func (c *Client) ListPorts(ctx context.Context) (TerminalList, error) {
	var l TerminalList
	return l, c.do(ctx, http.MethodGet, "/v1/terminals?ports=1", nil, &l)
}
