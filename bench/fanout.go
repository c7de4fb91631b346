package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// tickEvery is the pause between two stamps.
const tickEvery = 20 * time.Millisecond

// fanOutPart measures one terminal with more and more observers: the rate of a flood,
// then the delay of stamps.
func fanOutPart(ctx context.Context, s settings) ([]row, error) {
	c, err := findCorpus("coloured")
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, watchers := range []int{1, 10, 50, 200} {
		if watchers > s.watchers {
			break
		}
		more, err := fanOut(ctx, s, onTerminal(c.block()), watchers)
		if err != nil {
			return nil, fmt.Errorf("%d observers: %w", watchers, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func fanOut(ctx context.Context, s settings, block []byte, watchers int) ([]row, error) {
	r, err := newHostRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	m, err := dialMachine(ctx, r.host, 0)
	if err != nil {
		return nil, err
	}
	defer m.conn.Close()
	if err := m.lend(ctx, 0, 1); err != nil {
		return nil, err
	}
	var g gallery
	defer g.close()
	for n := range watchers {
		if err := g.join(ctx, r.host, n, m.uris[0], n == watchers-1); err != nil {
			return nil, err
		}
	}
	before, err := cpuTime(r.server.Process.Pid)
	if err != nil {
		return nil, err
	}
	rate, resyncs, err := g.rateOf(ctx, s.flow, func(stop <-chan struct{}) error { return m.flood(ctx, m.uris[0], block, stop) })
	if err != nil {
		return nil, err
	}
	after, err := cpuTime(r.server.Process.Pid)
	if err != nil {
		return nil, err
	}
	if err := m.await(ctx, m.uris[0], 0); err != nil {
		return nil, err
	}
	ages, err := g.ticks(ctx, m, s.flow)
	if err != nil {
		return nil, err
	}
	const part = "fan-out"
	name := fmt.Sprintf("%d observers", watchers)
	return append([]row{{Part: part, Name: name + ": in all", Value: rate, Unit: "MB/s",
		Note: fmt.Sprintf("of JSON text; each was brought up to date %s times a second; the host used %s of a core",
			digits(float64(resyncs)/float64(watchers)/s.flow.Seconds()), digits((after-before).Seconds()/s.flow.Seconds()))}},
		quantiles(part, name+": from machine to observer", ages)...), nil
}

// rateOf runs flood for span, or longer until output arrives, and returns the rate to all
// observers together, in MB/s, and the number of resyncs.
func (g *gallery) rateOf(ctx context.Context, span time.Duration, flood func(stop <-chan struct{}) error) (rate float64, resyncs int, err error) {
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- flood(stop) }()
	g.count()
	began := time.Now()
	err = sleep(ctx, span)
	within, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	n, late := poll(within, func() (int64, error) { // on a busy machine, output may take longer than span
		n, more := g.count()
		if resyncs += more; n == 0 {
			return 0, errNotYet
		}
		return n, nil
	})
	took := time.Since(began)
	close(stop)
	return float64(n) / 1e6 / took.Seconds(), resyncs, errors.Join(err, late, <-ended)
}

// ticks makes the machine print a stamp every tickEvery for span, and returns how old
// each was when the timed observer received it, in ms. It waits first until that observer
// has received all earlier output.
func (g *gallery) ticks(ctx context.Context, m *fakeMachine, span time.Duration) ([]float64, error) {
	g.takeAges()
	for deadline := time.Now().Add(startWithin); len(g.takeAges()) == 0; {
		if time.Now().After(deadline) {
			return nil, errors.New("no stamp has arrived")
		}
		if err := g.tick(ctx, m); err != nil {
			return nil, err
		}
	}
	for range span / tickEvery {
		if err := g.tick(ctx, m); err != nil {
			return nil, err
		}
	}
	return g.takeAges(), nil
}

func (g *gallery) tick(ctx context.Context, m *fakeMachine) error {
	if err := m.print(ctx, m.uris[0], stamp(), machineWindow); err != nil {
		return err
	}
	return sleep(ctx, tickEvery)
}

// takeAges returns the ages that were noted since the last call.
func (g *gallery) takeAges() []float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	ages := g.ages
	g.ages = nil
	return ages
}
