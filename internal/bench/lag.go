package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"tether/agent/localapi"
)

// lagPart lets terminals that are started without flags flood one observer. Their child waits for readers only a little, so output may be
// lost; on an otherwise idle machine none should be.
func lagPart(ctx context.Context, s settings) ([]row, error) {
	const part = "default flags"
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	c, err := findCorpus("coloured")
	if err != nil {
		return nil, err
	}
	w := newWork(c, s.megabytes/2)
	var shown, rates []float64
	complete := 0
	for range s.rounds {
		missing, took, err := r.carryLagging(ctx, w)
		if err != nil {
			return nil, err
		}
		shown = append(shown, 1-float64(missing)/float64(w.want.bytes))
		rates = append(rates, float64(w.want.bytes)/1e6/took.Seconds())
		if missing == 0 {
			complete++
		}
	}
	return []row{
		row{Part: part, Name: "runs in which the observer got every byte", Value: float64(complete), Unit: fmt.Sprintf("of %d", s.rounds),
			Note: fmt.Sprintf("%d MB coloured each", s.megabytes/2)}.least(float64(s.rounds)),
		{Part: part, Name: "shown, of what was printed", Value: slices.Min(shown), Note: "in the worst run"},
		{Part: part, Name: "from the line that starts it to the exit", Value: median(rates), Unit: "MB/s"},
	}, nil
}

// carryLagging runs the child in a terminal with the default policy. It returns how many bytes the observer did not get, and the time from the
// typed line until the observer saw the exit.
func (r *rig) carryLagging(ctx context.Context, w work) (missing int64, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	argv, err := w.argv()
	if err != nil {
		return 0, 0, err
	}
	before, err := r.gapBytes(ctx)
	if err != nil {
		return 0, 0, err
	}
	id, uri, err := r.startSpec(ctx, localapi.SpawnRequest{Command: argv, Env: r.env, Cwd: r.home})
	if err != nil {
		return 0, 0, err
	}
	var shown atomic.Int64
	o, err := r.watch(ctx, uri, func(p []byte) { shown.Add(int64(len(p))) })
	if err != nil {
		return 0, 0, err
	}
	defer o.close()
	if err := until(ctx, func() bool { return shown.Load() > 0 }); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := r.typeLine(ctx, id); err != nil {
		return 0, 0, err
	}
	if err := wait(ctx, o.ended, "the exit"); err != nil {
		return 0, 0, err
	}
	took = time.Since(began)
	if err := o.problem(); err != nil {
		return 0, 0, err
	}
	after, err := r.gapBytes(ctx)
	if missing = after - before; missing == 0 {
		missing = max(w.want.bytes-shown.Load(), 0)
	}
	return missing, took, err
}

// gapBytes is the number of bytes that the daemon could not send to the host so far.
func (r *rig) gapBytes(ctx context.Context) (int64, error) {
	s, err := r.door.Status(ctx)
	if err != nil || len(s.Hosts) == 0 {
		return 0, err
	}
	return s.Hosts[0].GapBytes, nil
}
