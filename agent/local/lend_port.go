package local

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"tether/agent/devserver"
	"tether/agent/loans"
	"tether/agent/localapi"
	"tether/agent/term"
)

// portsFrom reads the ports of a request: numbers, or localapi.AutoPort.
func portsFrom(words []string) (all []int, err error) {
	if len(words) > loans.MaxPorts {
		return nil, localapi.BadRequest("%d ports are too many; at most %d", len(words), loans.MaxPorts)
	}
	for _, word := range words {
		n, err := strconv.Atoi(word)
		switch {
		case word == localapi.AutoPort:
			n = loans.AutoPort
		case err != nil || word != strconv.Itoa(n) || n < 1 || n > 65535:
			return nil, localapi.BadRequest("port %.20q must be %s or %d to 65535", word, localapi.AutoPort, loans.LeastPort)
		case n < loans.LeastPort:
			return nil, localapi.BadRequest("port %d cannot be shared: ports below %d belong to servers of the system", n, loans.LeastPort)
		}
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all, nil
}

// checkPorts refuses ports that cannot be lent to host: because it takes none, because
// the terminal can have none, or because programs that are not the terminal's have them.
// A port on which nothing listens may be lent: each connection is checked again.
func (s *Server) checkPorts(r *http.Request, h term.Handle, host string, ports []int) error {
	i := h.Info()
	switch {
	case i.Exit != nil:
		return &localapi.Error{Code: localapi.CodeExited, Message: fmt.Sprintf("%s has ended, so it has no port to share", i.ID)}
	case i.Adopted != nil && i.Adopted.Pid == 0:
		return localapi.BadRequest("%s is a pane of %s, which does not tell whose programs run there: its ports cannot be told from others", i.ID, i.Adopted.From)
	}
	if err := s.opts.Hosts.TakesPorts(host); err != nil {
		return err
	}
	for _, port := range ports {
		if port == loans.AutoPort {
			continue
		}
		err := devserver.Of(h).Check(port)
		unserved, ok := errors.AsType[*devserver.Error](err)
		switch {
		case err == nil, ok && unserved.Kind == devserver.None:
		case ok && unserved.Kind == devserver.Foreign:
			return &localapi.Error{Code: localapi.CodeDenied, Message: fmt.Sprintf("port %d cannot be shared: it is used by %s, not by a program of %s", port, s.portUserFor(r, port), i.ID),
				Hint: "only ports of the terminal's own programs can; a port that a container publishes belongs to the container's daemon"}
		default:
			return err
		}
	}
	return nil
}

// portUserFor says to whoever asks who has a port.
func (s *Server) portUserFor(r *http.Request, port int) string {
	asks := agentTerminals{server: s, access: s.access(r)}
	if by := asks.PortUsers([]int{port})[port]; by != "" {
		return by
	}
	return "another program"
}

// unlendPorts ends the lending of ports at one host, or at all to which they are lent.
func (s *Server) unlendPorts(w http.ResponseWriter, r *http.Request, h term.Handle, req localapi.UnlendRequest) error {
	ports, err := portsFrom(req.Ports)
	if err != nil {
		return err
	}
	if len(req.From) > 0 {
		return localapi.BadRequest("ports and from cannot be combined: a port is open to everybody who may watch the terminal")
	}
	some := map[int]bool{}
	for _, loan := range h.Info().Loans {
		if req.Host != "" && loan.Host != req.Host {
			continue
		}
		var drop []int
		for _, p := range loan.Ports {
			if slices.Contains(ports, p.Port) {
				drop, some[p.Port] = append(drop, p.Port), true
			}
		}
		if len(drop) == 0 {
			continue
		}
		if err := h.DropPorts(loan.Host, drop...); err != nil && !errors.Is(err, loans.ErrNotLent) && !errors.Is(err, loans.ErrNoPort) {
			return err
		}
	}
	for i, port := range ports {
		if !some[port] {
			return &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("port %s of %s is not shared", req.Ports[i], h.ID()), Hint: "tether ls lists shared ports"}
		}
	}
	return reply(w, s.terminal(h, s.views(r)))
}
