package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"tether/ahp"
	"tether/ahp/client"
)

const (
	machineLends  = 5  // terminals of each machine
	machineFloods = 20 // machines that flood
)

// hostLoadPart fills a host and measures the memory per client. Then some terminals
// flood, one observer does not read, and it measures the rate and the delay of a quiet
// terminal's stamps.
func hostLoadPart(ctx context.Context, s settings) ([]row, error) {
	const part = "hostload"
	r, err := newHostRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	grown := growth{rig: r, settle: s.settle}
	empty := grown.step(1)
	machines, err := dialMachines(ctx, r.host, s.machines)
	if err != nil {
		return nil, err
	}
	defer func() { closeMachines(machines) }()
	perMachine := grown.step(s.machines)
	if err := eachMachine(machines, func(n int, m *fakeMachine) error { return m.lend(ctx, n, machineLends) }); err != nil {
		return nil, err
	}
	perTerminal := grown.step(s.machines * machineLends)
	floods := min(machineFloods, s.machines-1)
	var g, quiet gallery
	defer g.close()
	defer quiet.close()
	for n := range s.watchers {
		if err := g.join(ctx, r.host, n, machines[n%floods].uris[0], false); err != nil {
			return nil, err
		}
	}
	perObserver := grown.step(s.watchers)
	if grown.err != nil {
		return nil, grown.err
	}
	last := machines[len(machines)-1]
	if err := quiet.join(ctx, r.host, s.watchers, last.uris[0], true); err != nil {
		return nil, err
	}
	stalled, err := stall(ctx, r.host, machines[0].uris[0])
	if err != nil {
		return nil, err
	}
	defer stalled.close()
	rows := []row{
		{Part: part, Name: "an empty host", Value: empty / 1024, Unit: "MiB"},
		{Part: part, Name: fmt.Sprintf("per machine, of %d", s.machines), Value: perMachine, Unit: "KiB"},
		{Part: part, Name: fmt.Sprintf("per idle terminal, of %d", s.machines*machineLends), Value: perTerminal, Unit: "KiB"},
		{Part: part, Name: fmt.Sprintf("per observer, of %d", s.watchers), Value: perObserver, Unit: "KiB"},
	}
	more, err := hostLoadFlood(ctx, s, r, machines[:floods], last, &g, &quiet)
	return append(rows, more...), err
}

// hostLoadFlood lets machines flood while last prints stamps.
func hostLoadFlood(ctx context.Context, s settings, r *rig, machines []*fakeMachine, last *fakeMachine, g, quiet *gallery) ([]row, error) {
	c, err := findCorpus("coloured")
	if err != nil {
		return nil, err
	}
	block := onTerminal(c.block())
	type ticked struct {
		ages []float64
		err  error
	}
	told := make(chan ticked, 1)
	rate, resyncs, err := g.rateOf(ctx, s.flow, func(stop <-chan struct{}) error {
		go func() {
			ages, err := quiet.ticks(ctx, last, s.flow)
			told <- ticked{ages, err}
		}()
		return eachMachine(machines, func(_ int, m *fakeMachine) error { return m.flood(ctx, m.uris[0], block, stop) })
	})
	ticks := <-told
	if err := errors.Join(err, ticks.err); err != nil {
		return nil, err
	}
	now, err := memoryOf(r.server.Process.Pid)
	if err != nil {
		return nil, err
	}
	const part = "hostload"
	name := fmt.Sprintf("%d floods, %d observers and a stalled one", len(machines), s.watchers)
	rows := []row{
		{Part: part, Name: name + ": in all", Value: rate, Unit: "MB/s", Note: fmt.Sprintf("of JSON text; each was brought up to date %s times a second",
			digits(float64(resyncs)/float64(s.watchers)/s.flow.Seconds()))},
		{Part: part, Name: "memory then", Value: mib(now.rss), Unit: "MiB", Note: fmt.Sprintf("peak %s MiB", digits(mib(now.peak)))},
	}
	return append(rows, quantiles(part, "a quiet terminal meanwhile, machine to observer", ticks.ages)...), nil
}

// stalledObserver reads nothing after the first output.
type stalledObserver struct {
	conn    *client.Conn
	release chan struct{} // closed by close
}

func stall(ctx context.Context, e client.Endpoint, uri string) (*stalledObserver, error) {
	o := &stalledObserver{release: make(chan struct{})}
	c, err := client.Connect(ctx, e, client.Options{ClientID: "bench-stalled", OnEnvelope: func(ahp.EnvelopeView) { <-o.release }})
	if err != nil {
		return nil, err
	}
	o.conn = c
	_, err = c.Subscribe(ctx, uri)
	return o, err
}

func (o *stalledObserver) close() {
	close(o.release)
	o.conn.Close()
}

// growth measures the increase of a host's memory from step to step.
type growth struct {
	rig    *rig
	settle time.Duration
	rss    int64
	err    error
}

// step returns the host's gain of memory since the last step, divided by n, in KiB.
func (g *growth) step(n int) float64 {
	runtime.GC() // of this process, so that its clients leave more of the machine to the host
	time.Sleep(g.settle)
	now, err := memoryOf(g.rig.server.Process.Pid)
	if err != nil && g.err == nil {
		g.err = err
	}
	gained := float64(now.rss-g.rss) / 1024 / float64(n)
	g.rss = now.rss
	return gained
}
