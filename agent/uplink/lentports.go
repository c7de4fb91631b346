package uplink

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tether/agent/loans"
	"tether/ahp"
	"tether/jsonrpc"
)

// TakesPorts returns nil if the host takes lent ports, else ErrOffline or ErrNoPorts.
func (l *Link) TakesPorts() error {
	s, err := l.online()
	if err == nil && !s.marker.Ports {
		err = ErrNoPorts
	}
	return err
}

// ports returns the loan's ports in the protocol's words, none for a host that takes
// none.
func (s *session) ports(loan *loans.Loan) (all []ahp.LentPort) {
	if !s.marker.Ports {
		return nil
	}
	for _, p := range loan.OpenPorts() {
		one := ahp.LentPort{Port: int64(p.Port), Write: p.Write, GuestsOnly: p.Guests, SinceMs: p.Since.UnixMilli()}
		if !p.Until.IsZero() {
			one.UntilMs = p.Until.UnixMilli()
		}
		all = append(all, one)
	}
	return all
}

// tellPorts tells the host which ports are lent now, if that has changed. A host that
// does not take them shows old ones, but gets nothing from them.
func (s *session) tellPorts(ctx context.Context, le *lending, loan *loans.Loan) error {
	all := s.ports(loan)
	s.link.mu.Lock()
	same := slices.Equal(le.ports, all)
	s.link.mu.Unlock()
	if same {
		return nil
	}
	err := s.conn.Peer().CallBulk(ctx, ahp.MethodLentPorts, ahp.LentPortsParams{Channel: le.uri, Ports: all}, nil)
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused {
		s.log.Warn().Err(shownError{err}).Msg("the host does not take the ports of a terminal")
	} else if err != nil {
		return fmt.Errorf("say which ports are open: %w", err)
	}
	s.link.update(le, func(le *lending) { le.ports = all })
	return nil
}
