package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tether/agent/localapi"
)

// The history may cost a flood a tenth, and one that is lent a twentieth.
const (
	floorRecorded     = 0.9
	floorRecordedLent = 0.95
)

// notLent is a directory in which terminals are not lent.
const notLent = "/usr"

// historyPart compares a daemon that keeps a history with one that keeps none, in rounds
// that alternate.
func historyPart(ctx context.Context, s settings) ([]row, error) {
	c, err := findCorpus("coloured")
	if err != nil {
		return nil, err
	}
	w := newWork(c, s.megabytes)
	var rigs [2]*rig
	for i, keep := range []string{"0s", "7d"} {
		config := fmt.Sprintf("[history]\nkeep = %q\n[[lend.rules]]\neffect = \"no\"\ndirectories = [%q]\n", keep, notLent)
		if rigs[i], err = newRigWith(ctx, s.programs, config); err != nil {
			return nil, err
		}
		defer rigs[i].close()
	}
	kinds := []struct {
		name  string
		least float64
		run   func(*rig) (time.Duration, error)
	}{
		{"a flood that is not lent", floorRecorded, func(r *rig) (time.Duration, error) { return r.flood(ctx, w) }},
		{"a lent flood", floorRecordedLent, func(r *rig) (time.Duration, error) { return r.carry(ctx, w) }},
	}
	var rows []row
	for _, kind := range kinds {
		var ratios []float64
		for range s.rounds {
			var took [2]time.Duration
			for i, r := range rigs {
				if took[i], err = kind.run(r); err != nil {
					return nil, err
				}
			}
			ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
		}
		rows = append(rows, row{Part: "history", Name: kind.name + ": throughput with, of without", Value: median(ratios)}.least(kind.least))
	}
	echo, err := echoesBesideHistory(ctx, rigs, s.keys)
	return append(rows, echo...), err
}

// echoesBesideHistory types keys beside a lent flood, in turn without a history and with
// one.
func echoesBesideHistory(ctx context.Context, rigs [2]*rig, keys int) ([]row, error) {
	const turns = 2
	var seen [2]echoes
	for range turns {
		for i, r := range rigs {
			f, err := startFlood(ctx, r)
			if err != nil {
				return nil, err
			}
			e, err := measureEchoes(ctx, r, keys/turns)
			f.stop()
			if err != nil {
				return nil, fmt.Errorf("beside a flood: %w", err)
			}
			seen[i].local, seen[i].observer = append(seen[i].local, e.local...), append(seen[i].observer, e.observer...)
		}
	}
	var rows []row
	for i, name := range []string{"without", "with"} {
		rows = append(rows, quantiles("history", "echo beside a lent flood "+name+", local attach", seen[i].local)...)
		rows = append(rows, quantiles("history", "echo beside a lent flood "+name+", observer", seen[i].observer)...)
	}
	return rows, nil
}

// flood carries w through a terminal that is not lent, and returns the time from the line
// that starts it to the child's exit.
func (r *rig) flood(ctx context.Context, w work) (time.Duration, error) {
	argv, err := w.argv()
	if err != nil {
		return 0, err
	}
	t, err := r.door.Spawn(ctx, localapi.SpawnRequest{Command: argv, Env: r.env, Cwd: notLent})
	if err != nil {
		return 0, err
	}
	find := func(ok func(localapi.Terminal) bool) error {
		_, err := poll(ctx, func() (localapi.Terminal, error) {
			is, err := r.door.Find(ctx, t.ID)
			if err == nil && !ok(is) {
				err = errNotYet
			}
			return is, err
		})
		return err
	}
	if err := find(func(is localapi.Terminal) bool { return is.Bytes > 0 }); err != nil {
		return 0, err
	}
	began := time.Now()
	err = errors.Join(r.typeLine(ctx, t.ID), find(func(is localapi.Terminal) bool { return is.Exit != nil }))
	return time.Since(began), err
}
