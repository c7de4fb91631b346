package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tether/agent/localapi"
	"tether/events"
)

// The floors.
const (
	floorEventDelay = 50.0 // ms from a finished line to its event, p99
	floorEventCPU   = 10.0 // ms of CPU time that all idle subscriptions add in a minute
	floorEventFlood = 0.7  // rate of a flood with ten patterns, each with a literal, to the rate without

	eventsEach = 50                      // subscriptions of one connection
	stampEvery = 1300 * time.Millisecond // longer than the second for which events of a flood are combined
)

// stamps waits for a typed line, then prints the time every stampEvery.
func stamps(in io.Reader, out io.Writer) error {
	fmt.Fprint(out, childReady)
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return err
	}
	for {
		if _, err := fmt.Fprintf(out, "stamp %d\n", time.Now().UnixNano()); err != nil {
			return err
		}
		time.Sleep(stampEvery)
	}
}

// eventsPart measures subscriptions at the daemon: the cost of idle ones, the delay of events, and floods with and without patterns.
func eventsPart(ctx context.Context, s settings) ([]row, error) {
	rows, err := subscriptionsPart(ctx, s)
	if err != nil {
		return nil, err
	}
	flood, err := patternsPart(ctx, s)
	return append(rows, flood...), err
}

func subscriptionsPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	subscriptions := 10 * s.printers
	var ids []string
	for range s.printers {
		t, err := r.door.Spawn(ctx, localapi.SpawnRequest{Command: []string{self, childArg, "stamps", "1"}, Env: r.env, Cwd: r.home, Private: true})
		if err != nil {
			return nil, err
		}
		ids = append(ids, t.ID)
	}
	before, err := r.settled()
	if err != nil {
		return nil, err
	}
	alone, err := r.daemonCPU(s.idle)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	var mu sync.Mutex
	var delays []float64
	see := func(ev *events.Event) {
		line, _ := ev.Data["line"].(string)
		at, err := strconv.ParseInt(strings.TrimPrefix(line, "stamp "), 10, 64)
		if err != nil || ev.Data["count"] != 1.0 {
			return
		}
		mu.Lock()
		delays = append(delays, float64(time.Now().UnixNano()-at)/1e6)
		mu.Unlock()
	}
	for from := 0; from < subscriptions; from += eventsEach {
		var subs []events.Request
		for i := from; i < from+eventsEach; i++ {
			args, _ := json.Marshal(map[string]string{"pattern": `stamp \d+`, "terminalId": ids[i%len(ids)]})
			subs = append(subs, events.Request{Name: events.Line, Arguments: args})
		}
		if err := r.listen(ctx, &listening, subs, see); err != nil {
			return nil, err
		}
	}
	with, err := r.settled()
	if err != nil {
		return nil, err
	}
	busy, err := r.daemonCPU(s.idle)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := r.typeLine(ctx, id); err != nil {
			return nil, err
		}
	}
	time.Sleep(s.idle)
	mu.Lock()
	defer mu.Unlock()
	name := fmt.Sprintf("%d subscriptions to %d terminals", subscriptions, s.printers)
	return []row{
		row{Part: "events", Name: name + ", idle: CPU in a minute", Value: max(0, millis(busy-alone)), Unit: "ms", Note: fmt.Sprintf("the daemon without them %s ms", digits(millis(alone)))}.most(floorEventCPU),
		{Part: "events", Name: name + ": resident memory of each at first, with its stack, pattern, part of a connection, and garbage", Value: float64(with.rss-before.rss) / 1024 / float64(subscriptions), Unit: "KiB"},
		{Part: "events", Name: "printed to delivered, p50", Value: quantile(delays, 0.5), Unit: "ms", Note: fmt.Sprintf("%d events", len(delays))},
		row{Part: "events", Name: "printed to delivered, p99", Value: quantile(delays, 0.99), Unit: "ms"}.most(floorEventDelay),
	}, nil
}

// daemonCPU measures the daemon's CPU time for a span, and returns it scaled to a minute.
func (r *rig) daemonCPU(span time.Duration) (time.Duration, error) {
	before, err := r.usage()
	if err != nil {
		return 0, err
	}
	time.Sleep(span)
	after, err := r.usage()
	return time.Duration(float64(after.daemon-before.daemon) * float64(time.Minute) / float64(span)), err
}

// listen subscribes, and returns when all subscriptions are active. A goroutine of the group all calls see with each event, until ctx ends.
func (r *rig) listen(ctx context.Context, all *sync.WaitGroup, subs []events.Request, see func(*events.Event)) error {
	h, err := r.door.Events(ctx, localapi.EventsRequest{Subscriptions: subs, Follow: true}, nil)
	if err != nil {
		return err
	}
	for active := 0; active < len(subs); {
		x, err := h.Next()
		if err != nil {
			h.Close()
			return err
		}
		if x.Active {
			active++
		}
	}
	all.Go(func() {
		defer h.Close()
		for {
			x, err := h.Next()
			if err != nil {
				return
			}
			if x.Event != nil {
				see(x.Event)
			}
		}
	})
	return nil
}

// patternsPart floods a lent terminal, without and with subscriptions to ten patterns, in turn. No line of the flood matches a pattern.
func patternsPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	var rows []row
	for _, name := range []string{"plain", "coloured"} {
		c, err := findCorpus(name)
		if err != nil {
			return nil, err
		}
		w := newWork(c, s.megabytes)
		var ratios []float64
		var lost atomic.Int64
		for range s.rounds {
			without, err := r.carry(ctx, w)
			if err != nil {
				return nil, err
			}
			with, err := r.carryWatched(ctx, w, &lost)
			if err != nil {
				return nil, err
			}
			ratios = append(ratios, without.Seconds()/with.Seconds())
		}
		rows = append(rows, row{Part: "events", Name: name + ": lent, with ten patterns, of the rate without", Value: median(ratios), Unit: "", Note: fmt.Sprintf("%d announcements of lost output", lost.Load())}.least(floorEventFlood))
	}
	return rows, nil
}

// carryWatched is carry with subscriptions to ten patterns in all terminals. It adds the reports of lost output to lost.
func (r *rig) carryWatched(ctx context.Context, w work, lost *atomic.Int64) (took time.Duration, err error) {
	listening, cancel := context.WithCancel(ctx)
	var subs []events.Request
	for i := range 10 {
		args, _ := json.Marshal(map[string]string{"pattern": fmt.Sprintf(`(panic|fatal): never %d[0-9]+`, i)})
		subs = append(subs, events.Request{Name: events.Line, Arguments: args})
	}
	h, err := r.door.Events(listening, localapi.EventsRequest{Subscriptions: subs, Follow: true}, nil)
	if err != nil {
		cancel()
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			x, err := h.Next()
			if err != nil {
				return
			}
			if x.Truncated {
				lost.Add(1)
			}
		}
	}()
	took, err = r.carry(ctx, w)
	cancel()
	h.Close()
	<-ended
	if errors.Is(err, context.Canceled) {
		err = ctx.Err()
	}
	return took, err
}
