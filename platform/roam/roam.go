// Package roam reports that the machine has slept or that its network has changed. After
// that a connection may be dead although nothing has reported it, and a connection that
// failed before may be possible.
//
//	err := roam.Watch(ctx, func(why roam.Change) { link.Moved() })
//
// It compares a few numbers every three seconds, so that it rarely wakes an idle process,
// and asks no other program. A report is a hint to check a connection, never a fact about
// it: it may come late, twice, or for an unused address.
package roam

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"
)

// Change is the kind of event.
type Change uint8

// The changes.
const (
	Woke  Change = iota + 1 // the machine slept, or this process was stopped, for some seconds
	Moved                   // the network addresses have changed
)

func (c Change) String() string { return [...]string{"nothing", "woke up", "network changed"}[c] }

const (
	// tick is the time between two looks, and so the longest delay of a report.
	tick = 3 * time.Second
	// Woke is reported if two looks are at least stopped apart, or if the machine has
	// slept for at least slept between them.
	stopped = 5 * time.Second
	slept   = 2 * time.Second
)

// Watch calls changed, one call at a time, until ctx ends, and returns ctx's error.
func Watch(ctx context.Context, changed func(Change)) error {
	next, stop := ticks(ctx, tick)
	defer stop()
	return watch(next, asleep, addresses, changed)
}

// watch is Watch with its sources. next blocks until it is time for another look; its
// error ends watch. asleep returns how long the machine has slept since some fixed
// moment. addrs returns the machine's addresses.
func watch(next func() error, asleep func() time.Duration, addrs func() ([]string, error), changed func(Change)) error {
	last, sleep := time.Now(), asleep()
	known, err := addrs() // if err is not nil, the addresses are not known yet
	for {
		if err := next(); err != nil {
			return err
		}
		now, sleepNow := time.Now(), asleep()
		woke := now.Sub(last) >= stopped || sleepNow-sleep >= slept
		last, sleep = now, sleepNow
		if woke {
			changed(Woke)
		}
		found, errNow := addrs()
		moved := errNow == nil && err == nil && !slices.Equal(found, known)
		if errNow == nil {
			known, err = found, nil
		}
		if moved {
			changed(Moved)
		}
	}
}

// goTicks returns next, which blocks until the next tick and returns ctx's error when ctx
// ends, and stop, which releases the ticker. every is the time between two ticks.
func goTicks(ctx context.Context, every time.Duration) (next func() error, stop func()) {
	t := time.NewTicker(every)
	next = func() error {
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return next, t.Stop
}

// addresses returns this machine's addresses in a fixed order, without loopback and
// link-local ones.
func addresses() ([]string, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, a := range all {
		ip, ok := a.(*net.IPNet)
		if ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			out = append(out, ip.String())
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out, nil
}
