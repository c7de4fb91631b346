package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/jsonspan"
)

// Floors for many observers of a terminal that holds.
const (
	floorTenObservers   = 2.6  // rate of all together, to the bare drain
	floorFiftyObservers = 5.2  // the same
	floorBesideStalled  = 0.9  // rate beside an observer that never reads, to the rate without it
	floorKeyBeside      = 10.0 // ms of a key at another terminal meanwhile, p99
)

// observersPart lets a terminal as installed, which holds its child, flood many
// observers. Each must get every byte.
func observersPart(ctx context.Context, s settings) ([]row, error) {
	const part = "observers of a terminal that holds"
	c, err := findCorpus("coloured")
	if err != nil {
		return nil, err
	}
	short, long := newWork(c, max(1, s.megabytes/10)), newWork(c, 2*s.megabytes) // long, so that the second for which a stalled observer holds it weighs little
	bare, err := drain(long)
	if err != nil {
		return nil, err
	}
	drained := float64(long.want.bytes) / 1e6 / bare.took.Seconds()
	rows := []row{{Part: part, Name: "bare drain", Value: drained, Unit: "MB/s"}}
	watched := func(w work, watchers int, stalled bool) (whole int, rate float64, err error) {
		r, err := newRig(ctx, s.programs)
		if err != nil {
			return 0, 0, err
		}
		defer r.close()
		return r.showAll(ctx, w, watchers, stalled)
	}
	for _, of := range []struct {
		watchers int
		floor    float64
	}{{min(10, s.viewers), floorTenObservers}, {s.viewers, floorFiftyObservers}} {
		whole, rate, err := watched(short, of.watchers, false)
		if err != nil {
			return rows, err
		}
		name := fmt.Sprintf("%d observers", of.watchers)
		rows = append(rows, row{Part: part, Name: name + ": with every byte", Value: float64(whole)}.least(float64(of.watchers)),
			row{Part: part, Name: name + ": in all, times the bare drain", Value: rate / drained, Note: digits(rate) + " MB/s"}.least(of.floor))
	}
	_, without, err := watched(long, s.viewers, false)
	if err != nil {
		return rows, err
	}
	whole, beside, err := watched(long, s.viewers, true)
	if err != nil {
		return rows, err
	}
	return append(rows, row{Part: part, Name: fmt.Sprintf("%d observers beside one that never reads: with every byte", s.viewers), Value: float64(whole)}.least(float64(s.viewers)),
		row{Part: part, Name: "the same: in all, of that without it", Value: beside / without,
			Note: fmt.Sprintf("%s and %s MB/s, %d MB", digits(beside), digits(without), 2*s.megabytes)}.least(floorBesideStalled)), nil
}

// keyBesidePart types at one terminal while another one floods many observers.
func keyBesidePart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	bare, err := bareEchoes(s.keys / 2)
	if err != nil {
		return nil, err
	}
	f, err := startFlood(ctx, r)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	var g gallery
	defer g.close()
	for n := range s.viewers - 1 { // the flood has one of its own
		if err := g.join(ctx, r.host, n, f.uri, false); err != nil {
			return nil, err
		}
	}
	took, err := typeAt(ctx, tetherPath{r}, s.keys/2)
	if err != nil {
		return nil, err
	}
	const part = "observers of a terminal that holds"
	rows := quantiles(part, fmt.Sprintf("a key at another terminal beside %d observers of a flood", s.viewers), took)
	rows[len(rows)-1] = rows[len(rows)-1].slower(floorKeyBeside, quantile(bare, 0.5), referenceEcho)
	return rows, nil
}

// showAll runs w in a terminal that holds, for observers that count bytes and, with
// stalled, one more that never reads. It returns the number of counting observers that
// got everything, and the rate to all of them together, in MB/s, until the last was done.
func (r *rig) showAll(ctx context.Context, w work, watchers int, stalled bool) (whole int, rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	argv, err := w.argv()
	if err != nil {
		return 0, 0, err
	}
	id, uri, err := r.start(ctx, argv...)
	if err != nil {
		return 0, 0, err
	}
	var shown atomic.Int64
	o, err := r.watch(ctx, uri, func(p []byte) { shown.Add(int64(len(p))) })
	if err != nil {
		return 0, 0, err
	}
	err = until(ctx, func() bool { return shown.Load() >= int64(len(onTerminal([]byte(childReady)))) })
	o.close()
	if err != nil {
		return 0, 0, err
	}
	line := onTerminal([]byte("\n"))
	want := int64(w.blocks*quotedLen(onTerminal(w.corpus.block())) + quotedLen(line)) // without childReady, which is in the snapshot
	all := make([]counted, watchers)
	var left sync.WaitGroup
	left.Add(watchers)
	for n := range all {
		conn, err := all[n].observe(ctx, r.host, n, uri, want, left.Done)
		if err != nil {
			return 0, 0, err
		}
		defer conn.Close()
	}
	if stalled {
		o, err := stall(ctx, r.host, uri)
		if err != nil {
			return 0, 0, err
		}
		defer o.close()
	}
	began := time.Now()
	if err := r.typeLine(ctx, id); err != nil {
		return 0, 0, err
	}
	done := make(chan struct{})
	go func() { left.Wait(); close(done) }()
	if err := wait(ctx, done, "what all observers are shown"); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	sum := int64(0)
	for n := range all {
		sum += all[n].bytes.Load()
		if all[n].bytes.Load() == want && !all[n].skipped.Load() {
			whole++
		}
	}
	text := float64(w.want.bytes) * float64(sum) / float64(want) // as it was printed, not as JSON
	return whole, text / 1e6 / took.Seconds(), nil
}

// quotedLen returns the length of text in JSON, without the quotes. Frames do not change
// it, as long as they cut no character.
func quotedLen(text []byte) int { return len(jsonspan.AppendQuote(nil, text)) - 2 }

// counted is what one observer has received.
type counted struct {
	bytes   atomic.Int64 // of JSON
	skipped atomic.Bool  // the host has skipped output for this observer
}

// observe connects observer n to uri. It calls over once: when want bytes have arrived,
// or the terminal has exited.
func (o *counted) observe(ctx context.Context, e client.Endpoint, n int, uri string, want int64, over func()) (*client.Conn, error) {
	over = sync.OnceFunc(over)
	conn, err := client.Connect(ctx, e, client.Options{ClientID: fmt.Sprintf("bench-observer-%d", n), OnEnvelope: func(v ahp.EnvelopeView) {
		if v.Channel != uri {
			return
		}
		switch v.Kind {
		case ahp.ActionTerminalData:
			if o.bytes.Add(int64(len(v.Data))-2) >= want {
				over()
			}
		case ahp.ActionTerminalCleared:
			o.skipped.Store(true)
		case ahp.ActionTerminalExited:
			over()
		}
	}})
	if err != nil {
		return nil, err
	}
	_, err = conn.Subscribe(ctx, uri)
	return conn, err
}
