package main

import (
	"context"
	"errors"
	"os"
	"sync"

	"tether/ahp/client"
	"tether/platform/dirs"
)

// dialsAtOnce is the maximum number of connections that are made at the same time.
const dialsAtOnce = 64

// newHostRig starts a host without a daemon. The caller must close the rig.
func newHostRig(ctx context.Context, p programs) (*rig, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	home, err := os.MkdirTemp(shortTemp(), "tb")
	if err != nil {
		return nil, err
	}
	r := &rig{home: home, env: append(os.Environ(), dirs.HomeVar+"="+home)}
	if err := r.startHost(ctx, p); err != nil {
		r.close()
		return nil, r.said.explain(err)
	}
	return r, nil
}

// dialMachines connects machines, a bounded number at a time.
func dialMachines(ctx context.Context, e client.Endpoint, count int) ([]*fakeMachine, error) {
	machines := make([]*fakeMachine, count)
	err := eachOf(count, func(n int) (err error) {
		machines[n], err = dialMachine(ctx, e, n)
		return err
	})
	if err != nil {
		closeMachines(machines)
		return nil, err
	}
	return machines, nil
}

func closeMachines(machines []*fakeMachine) {
	_ = eachOf(len(machines), func(n int) error {
		if m := machines[n]; m != nil && m.conn != nil {
			m.conn.Close()
		}
		return nil
	})
}

// eachMachine calls f for all machines at once.
func eachMachine(machines []*fakeMachine, f func(n int, m *fakeMachine) error) error {
	var all sync.WaitGroup
	errs := make([]error, len(machines))
	for n, m := range machines {
		all.Go(func() { errs[n] = f(n, m) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// eachOf calls f for 0 to count-1, a bounded number at a time.
func eachOf(count int, f func(n int) error) error {
	var all sync.WaitGroup
	errs := make([]error, count)
	slots := make(chan struct{}, dialsAtOnce)
	for n := range count {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[n] = f(n)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
