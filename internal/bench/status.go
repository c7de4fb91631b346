package main

import (
	"context"
	"fmt"
	"os/exec"
	"time"
)

// floorStatus is the most that `tether status` may take, in ms, in any state of the network.
const floorStatus = 200.0

const (
	statusPrograms = 10 // one in so many requests runs the program; all ask the door
	statusLent     = 3  // lent terminals
)

// statusPart measures the status of one daemon whose host answers, then is frozen, then is gone. People run the program; user interfaces ask the
// door without it.
func statusPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	defer r.signalHost("CONT") // a frozen host could not end
	for range statusLent {
		if _, _, err := r.start(ctx, "sleep", "1000"); err != nil {
			return nil, err
		}
	}
	var rows []row
	for _, c := range []struct{ name, signal string }{{"host online", ""}, {"host frozen", "STOP"}, {"host gone", "KILL"}} {
		if c.signal != "" {
			if err := r.signalHost(c.signal); err != nil {
				return nil, err
			}
		}
		got, err := r.statuses(ctx, s.programs.daemon[0], s.keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, r.said.explain(err))
		}
		rows = append(rows, got.rows(c.name)...)
	}
	return rows, nil
}

// asked are the times of answers, in ms.
type asked struct{ door, program []float64 }

func (a asked) rows(name string) []row {
	return []row{
		{Part: "status", Name: name + ", p50", Value: quantile(a.program, 0.5), Unit: "ms", Note: "the program, from its start to its end"},
		row{Part: "status", Name: name + ", p99", Value: quantile(a.program, 0.99), Unit: "ms", Note: fmt.Sprintf("of %d", len(a.program))}.most(floorStatus),
		{Part: "status", Name: name + ", the door alone, p50", Value: quantile(a.door, 0.5), Unit: "ms"},
		row{Part: "status", Name: name + ", the door alone, p99", Value: quantile(a.door, 0.99), Unit: "ms", Note: fmt.Sprintf("of %d", len(a.door))}.most(floorStatus),
	}
}

// statuses asks the door n times, and runs the program each time in statusPrograms.
func (r *rig) statuses(ctx context.Context, program string, n int) (a asked, err error) {
	for i := range n {
		began := time.Now()
		if _, err := r.door.Status(ctx); err != nil {
			return a, err
		}
		a.door = append(a.door, millis(time.Since(began)))
		if i%statusPrograms != 0 {
			continue
		}
		cmd := exec.CommandContext(ctx, program, "status", "--json")
		cmd.Env, cmd.Stderr = r.env, &r.said
		began = time.Now()
		if err := cmd.Run(); err != nil {
			return a, fmt.Errorf("tether status: %w", err)
		}
		a.program = append(a.program, millis(time.Since(began)))
	}
	return a, nil
}
