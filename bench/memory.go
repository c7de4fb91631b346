package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"time"
)

const (
	floorIdleRSS     = 15.0  // MiB of the daemon
	floorTogether    = 30.0  // MiB of daemon, host and holder
	floorPerTerminal = 150.0 // KiB of the daemon
	floorReady       = 50.0  // ms from a program's start until it is ready
	floorIdleCPU     = 20.0  // ms in 30 s, with idleTerminals
	floorHolderPSS   = 2.0   // MB of each, of many

	idleTerminals = 50
	idleSpan      = 30 * time.Second
	startSettle   = 3 * time.Second // within which a daemon checks whether a program that has just started waits for input
	hostSettle    = 6 * time.Second // within which an idle host returns spare memory to the system
)

// startPart measures how long the programs take to be ready, and their sizes.
func startPart(ctx context.Context, s settings) ([]row, error) {
	var daemon, host []float64
	for range s.starts {
		r, err := newRig(ctx, s.programs)
		if err != nil {
			return nil, err
		}
		daemon, host = append(daemon, millis(r.daemonReady)), append(host, millis(r.hostReady))
		r.close()
	}
	rows := []row{
		row{Part: "start", Name: "daemon ready", Value: median(daemon), Unit: "ms"}.most(floorReady),
		row{Part: "start", Name: "host ready", Value: median(host), Unit: "ms"}.most(floorReady),
	}
	for _, argv := range [][]string{s.programs.daemon, s.programs.host} {
		info, err := os.Stat(argv[0])
		if err != nil {
			return nil, err
		}
		built, err := buildinfo.ReadFile(argv[0])
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{Part: "start", Name: "size of " + info.Name(), Value: float64(info.Size()) / (1 << 20), Unit: "MiB", Note: fmt.Sprintf("%d modules", len(built.Deps))})
	}
	return rows, nil
}

// memoryPart measures an idle daemon with more and more idle lent terminals.
func memoryPart(ctx context.Context, s settings) ([]row, error) {
	const part = "idle daemon"
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	empty, err := r.settled(s.settle)
	if err != nil {
		return nil, err
	}
	rows := []row{row{Part: part, Name: "memory", Value: mib(empty.rss), Unit: "MiB", Note: fmt.Sprintf("%d threads", empty.threads)}.most(floorIdleRSS)}
	var first memory // with one terminal: this includes all that terminals share
	running := 0
	for _, n := range []int{1, 10, idleTerminals, 100} {
		for ; running < n; running++ {
			if _, _, err := r.start(ctx, "sleep", "1000"); err != nil {
				return nil, err
			}
		}
		now, err := r.settled(s.settle)
		if err != nil {
			return nil, err
		}
		if n == 1 {
			first = now
			rows = append(rows, row{Part: part, Name: "memory with one idle lent terminal", Value: mib(now.rss), Unit: "MiB"}.most(floorIdleRSS))
			together, err := r.together()
			if err != nil {
				return nil, err
			}
			rows = append(rows, together)
			continue
		}
		rows = append(rows, row{Part: part, Name: fmt.Sprintf("per further one, of %d", n), Value: float64(now.rss-first.rss) / 1024 / float64(n-1), Unit: "KiB",
			Note: fmt.Sprintf("%s MiB in all, %d threads", digits(mib(now.rss)), now.threads)}.most(floorPerTerminal))
		if n != idleTerminals {
			continue
		}
		time.Sleep(startSettle)
		cpu, err := r.idleCPU(s.idle)
		if err != nil {
			return nil, err
		}
		rows = append(rows, cpu...)
	}
	_, pss, err := r.holderMemory()
	return append(rows, row{Part: part, Name: fmt.Sprintf("PSS of a holder, of %d", running), Value: pss, Unit: "MB"}.most(floorHolderPSS)), err
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// settled waits for span and returns the daemon's memory.
func (r *rig) settled(span time.Duration) (memory, error) {
	time.Sleep(span)
	return memoryOf(r.daemon.Process.Pid)
}

// together returns the row with the memory of daemon, host and the only holder.
func (r *rig) together() (row, error) {
	time.Sleep(hostSettle)
	holder, _, err := r.holderMemory()
	if err != nil {
		return row{}, err
	}
	sum := holder * 1e6
	for _, p := range []int{r.daemon.Process.Pid, r.server.Process.Pid} {
		m, err := memoryOf(p)
		if err != nil {
			return row{}, err
		}
		sum += float64(m.rss)
	}
	return row{Part: "idle daemon", Name: "memory of daemon, host and holder with one idle lent terminal", Value: sum / (1 << 20), Unit: "MiB"}.most(floorTogether), nil
}

// idleCPU measures CPU time for a span, and returns it scaled to idleSpan.
func (r *rig) idleCPU(span time.Duration) ([]row, error) {
	before, err := r.usage()
	if err != nil {
		return nil, err
	}
	time.Sleep(span)
	after, err := r.usage()
	if err != nil {
		return nil, err
	}
	scale := float64(idleSpan) / float64(span)
	name := fmt.Sprintf("CPU in %v, %d idle lent terminals", idleSpan, idleTerminals)
	note := ""
	if span != idleSpan {
		note = fmt.Sprintf("scaled up from %v", span)
	}
	return []row{
		row{Part: "idle daemon", Name: name, Value: millis(after.daemon-before.daemon) * scale, Unit: "ms", Note: note}.most(floorIdleCPU),
		{Part: "idle daemon", Name: "the host's CPU meanwhile", Value: millis(after.host-before.host) * scale, Unit: "ms", Note: note},
	}, nil
}
