package main

import (
	"context"
	"fmt"
	"time"
)

// The floors of CPU time were set on a machine whose bare drain had the reference rates.
const (
	floorThroughput = 0.8  // to the bare drain
	floorPlainCPU   = 16.0 // ms per MB, daemon and host together
	floorColourCPU  = 12.0

	referencePlain  = 35.7 // MB/s of the bare drain
	referenceColour = 74.2
)

// throughputPart measures plain and coloured output of a lent terminal, and the daemon's
// memory after some plain output.
func throughputPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var rows []row
	for _, kind := range []struct {
		name           string
		cpu, reference float64
	}{{"plain", floorPlainCPU, referencePlain}, {"coloured", floorColourCPU, referenceColour}} {
		c, err := findCorpus(kind.name)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			after, err := r.memoryAfter(ctx, newWork(c, s.megabytes/2), s.settle)
			if err != nil {
				return nil, err
			}
			rows = append(rows, after)
		}
		rounds, err := measureThroughput(ctx, r, newWork(c, s.megabytes), s.rounds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		all := summary(kind.name, rounds)
		all[of] = all[of].least(floorThroughput)
		all[cpu] = all[cpu].slower(kind.cpu, 1/all[bare].Value, 1/kind.reference)
		rows = append(rows, all...)
	}
	return rows, nil
}

// memoryAfter returns the row with the daemon's memory after a terminal has printed w and
// exited.
func (r *rig) memoryAfter(ctx context.Context, w work, settle time.Duration) (row, error) {
	if _, err := r.carry(ctx, w); err != nil {
		return row{}, err
	}
	m, err := r.settled(settle)
	return row{Part: "throughput", Name: fmt.Sprintf("daemon's memory after %s MB of output", digits(float64(w.want.bytes)/1e6)), Value: mib(m.rss), Unit: "MiB",
		Note: fmt.Sprintf("peak %s MiB", digits(mib(m.peak)))}, err
}

// Indexes of rows of summary.
const (
	bare = 0
	of   = 2
	cpu  = 3
)

// summary returns the rows with the medians of the rounds.
func summary(name string, rounds []passage) []row {
	const part = "throughput"
	take := func(f func(passage) float64) float64 {
		var all []float64
		for _, p := range rounds {
			all = append(all, f(p))
		}
		return median(all)
	}
	return []row{
		bare: {Part: part, Name: name + ": bare drain", Value: take(func(p passage) float64 { return p.bare }), Unit: "MB/s"},
		{Part: part, Name: name + ": lent, at the observer", Value: take(func(p passage) float64 { return p.lent }), Unit: "MB/s"},
		of: {Part: part, Name: name + ": of the bare drain", Value: take(func(p passage) float64 { return p.lent / p.bare })},
		cpu: {Part: part, Name: name + ": CPU of daemon and host", Value: take(func(p passage) float64 { return p.daemon + p.host }), Unit: "ms/MB",
			Note: fmt.Sprintf("daemon %s, host %s; the bare drain alone %s", digits(take(func(p passage) float64 { return p.daemon })),
				digits(take(func(p passage) float64 { return p.host })), digits(take(func(p passage) float64 { return p.drain })))},
	}
}

// passage is the measurement of one round.
type passage struct {
	bare, lent   float64 // MB/s
	daemon, host float64 // CPU ms per MB
	drain        float64 // CPU ms per MB of the bare drain
}

// measureThroughput compares a lent terminal seen by an observer at the host with the
// bare drain of the same child, in rounds that alternate.
func measureThroughput(ctx context.Context, r *rig, w work, rounds int) ([]passage, error) {
	var all []passage
	mb := float64(w.want.bytes) / 1e6
	for range rounds {
		bare, err := drain(w)
		if err != nil {
			return nil, fmt.Errorf("bare drain: %w", err)
		}
		before, err := r.usage()
		if err != nil {
			return nil, err
		}
		lent, err := r.carry(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("lent terminal: %w", err)
		}
		after, err := r.usage()
		if err != nil {
			return nil, err
		}
		all = append(all, passage{
			bare: mb / bare.took.Seconds(), drain: millis(bare.cpu) / mb, lent: mb / lent.Seconds(),
			daemon: millis(after.daemon-before.daemon) / mb, host: millis(after.host-before.host) / mb,
		})
	}
	return all, nil
}

// carry runs the child in a lent terminal and returns the time from the typed line until
// the observer had all output. It checks that the output is complete.
func (r *rig) carry(ctx context.Context, w work) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	argv, err := w.argv()
	if err != nil {
		return 0, err
	}
	id, uri, err := r.start(ctx, argv...)
	if err != nil {
		return 0, err
	}
	var got text
	var end time.Time
	ready := make(chan struct{}) // closed when the child waits for its line
	o, err := r.watch(ctx, uri, func(p []byte) {
		before := got.bytes
		got.add(p)
		if line := int64(len(onTerminal([]byte(childReady)))); before < line && got.bytes >= line {
			close(ready)
		}
		if got.bytes >= w.want.bytes {
			end = time.Now()
		}
	})
	if err != nil {
		return 0, err
	}
	defer o.close()
	if err := wait(ctx, ready, "the child's first line"); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := r.typeLine(ctx, id); err != nil {
		return 0, err
	}
	if err := wait(ctx, o.ended, "the exit"); err != nil {
		return 0, err
	}
	if err := o.problem(); err != nil {
		return 0, err
	}
	if got != w.want {
		return 0, fmt.Errorf("%d bytes with sum %08x arrived, want %d with %08x", got.bytes, got.sum, w.want.bytes, w.want.sum)
	}
	return end.Sub(began), nil
}

func wait(ctx context.Context, c <-chan struct{}, what string) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
	}
}
