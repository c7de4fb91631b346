package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"
)

const (
	stormHistory = 4 << 10 // bytes of output that each terminal has when the host comes back
	stormWithin  = 2 * time.Minute
)

// stormPart kills a host to which many machines lend terminals. It measures how long a new host takes until it has all terminals with their
// history, when all machines connect at once.
func stormPart(ctx context.Context, s settings) ([]row, error) {
	r, machines, err := newLendingRig(ctx, s)
	if err != nil {
		return nil, err
	}
	defer r.close()
	defer func() { closeMachines(machines) }()
	u, err := url.Parse(r.host.URL)
	if err != nil {
		return nil, err
	}
	_ = r.server.Process.Kill()
	_ = r.server.Wait()
	closeMachines(machines)
	machines = nil
	ctx, cancel := context.WithTimeout(ctx, stormWithin)
	defer cancel()
	p := s.programs
	p.host = append(slices.Clone(p.host), "--listen", u.Host)
	if err := r.startHost(ctx, p); err != nil {
		return nil, err
	}
	began := time.Now()
	if machines, err = dialMachines(ctx, r.host, s.machines); err != nil {
		return nil, err
	}
	history := make([]byte, 0, stormHistory+32)
	for len(history) < stormHistory {
		history = append(history, stamp()...)
	}
	err = eachMachine(machines, func(n int, m *fakeMachine) error {
		if err := m.lend(ctx, n, machineLends); err != nil {
			return err
		}
		for _, uri := range m.uris {
			if err := m.print(ctx, uri, history, machineWindow); err != nil {
				return err
			}
		}
		for _, uri := range m.uris {
			if err := m.await(ctx, uri, 0); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	now, err := memoryOf(r.server.Process.Pid)
	return []row{
		{Part: "storm", Name: fmt.Sprintf("%d machines at once: all %d terminals lent again, with their history", s.machines, s.machines*machineLends), Value: took.Seconds(), Unit: "s"},
		{Part: "storm", Name: "the new host's memory", Value: mib(now.rss), Unit: "MiB", Note: fmt.Sprintf("peak %s MiB", digits(mib(now.peak)))},
	}, err
}
