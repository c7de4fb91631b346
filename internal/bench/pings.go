package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// pingRound is the silence after which a host pings a client.
	pingRound = 30 * time.Second
	// pingSettle is the time between the last connection and the measurement, so that no round of pings falls on an edge of the span.
	pingSettle = 5 * time.Second
)

// pingsPart measures a host's cost for silent clients: a ping to each in every pingRound, and the answers. Thorough runs measure whole rounds.
func pingsPart(ctx context.Context, s settings) ([]row, error) {
	observers, err := pingsOfObservers(ctx, s)
	if err != nil {
		return nil, err
	}
	machines, err := pingsOfMachines(ctx, s)
	return append(observers, machines...), err
}

// pingsOfObservers counts the context switches of a host with observers of one silent terminal.
func pingsOfObservers(ctx context.Context, s settings) ([]row, error) {
	one := s
	one.machines = 1
	r, machines, err := newLendingRig(ctx, one)
	if err != nil {
		return nil, err
	}
	defer r.close()
	defer func() { closeMachines(machines) }()
	var g gallery
	defer g.close()
	for n := range idleObservers {
		if err := g.join(ctx, r.host, n, machines[0].uris[0], false); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, min(pingSettle, 100*s.idle)); err != nil {
		return nil, err
	}
	before, err := switches(r.server.Process.Pid)
	if err != nil {
		return nil, err
	}
	span := min(s.idle, pingRound)
	if err := sleep(ctx, span); err != nil {
		return nil, err
	}
	after, err := switches(r.server.Process.Pid)
	return []row{row{Part: "pings", Name: fmt.Sprintf("%d idle observers, context switches of the host in %v", idleObservers, pingRound),
		Value: (after - before) * float64(pingRound) / float64(span), Unit: "switches", Note: fmt.Sprintf("seen over %v", span)}.most(floorHostSwitches)}, err
}

func pingsOfMachines(ctx context.Context, s settings) ([]row, error) {
	r, machines, err := newLendingRig(ctx, s)
	if err != nil {
		return nil, err
	}
	defer r.close()
	defer func() { closeMachines(machines) }()
	span := 2 * pingRound
	if s.idle < idleSpan { // with -quick, or in a test
		span = min(pingRound, 100*s.idle)
	}
	if err := sleep(ctx, min(pingSettle, 100*s.idle)); err != nil {
		return nil, err
	}
	before, err := cpuTime(r.server.Process.Pid)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, span); err != nil {
		return nil, err
	}
	after, err := cpuTime(r.server.Process.Pid)
	if err != nil {
		return nil, err
	}
	for n, m := range machines {
		if err := m.conn.Err(); err != nil {
			return nil, fmt.Errorf("machine %d was lost: %w", n, err)
		}
	}
	return []row{{Part: "pings", Name: fmt.Sprintf("%d idle machines, CPU of the host", s.machines), Value: millis(after-before) / span.Seconds(), Unit: "ms/s",
		Note: fmt.Sprintf("over %v", span)}}, nil
}
