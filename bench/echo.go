package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"tether/agent/localclient"
	"tether/platform/pty"
)

// The floors were set on a machine whose bare pty echoed a key in referenceEcho (p50).
const (
	floorEchoP50   = 0.25 // ms above the bare pty, at the observer
	floorEchoP99   = 0.5
	floorEchoFlood = 4.0 // ms in all, during a flood
	referenceEcho  = 0.06

	keysInTurn = 50 // keys typed at one place before the next place has its turn
	keyTimeout = 2 * time.Minute
)

// echoing is a program that echoes each key itself, as an editor does; the pty does not.
var echoing = []string{"sh", "-c", "stty raw -echo && printf ready && exec cat"}

// echoes are the times from a key to its echo, in ms: at the bare pty, at a local attach,
// at an observer.
type echoes struct{ bare, local, observer []float64 }

// echoPart types keys into a bare pty and a lent terminal in turn, without and beside a
// flood.
func echoPart(ctx context.Context, s settings) ([]row, error) {
	r, err := newRig(ctx, s.programs)
	if err != nil {
		return nil, err
	}
	defer r.close()
	alone, err := measureEchoes(ctx, r, s.keys)
	if err != nil {
		return nil, err
	}
	f, err := startFlood(ctx, r)
	if err != nil {
		return nil, err
	}
	defer f.stop()
	busy, err := measureEchoes(ctx, r, s.keys)
	if err != nil {
		return nil, fmt.Errorf("beside a flood: %w", err)
	}
	rate, err := f.rate(ctx)
	if err != nil {
		return nil, err
	}
	return append(alone.rows(), busy.besideFlood(rate, quantile(alone.bare, 0.5))...), nil
}

func (e echoes) rows() []row {
	const part = "echo of a key"
	rows := append(quantiles(part, "bare pty", e.bare), quantiles(part, "local attach", e.local)...)
	rows = append(rows, quantiles(part, "observer at the host", e.observer)...)
	p50 := quantile(e.bare, 0.5)
	for _, above := range []struct {
		name      string
		at, limit float64
	}{{"p50", 0.5, floorEchoP50}, {"p99", 0.99, floorEchoP99}} {
		r := row{Part: part, Name: "observer above the bare pty, " + above.name, Value: quantile(e.observer, above.at) - quantile(e.bare, above.at), Unit: "ms"}
		rows = append(rows, r.slower(above.limit, p50, referenceEcho))
	}
	return rows
}

// besideFlood returns the rows beside a flood of rate MB/s. alone is the p50 of the bare
// pty's echo without a flood, in ms.
func (e echoes) besideFlood(rate, alone float64) []row {
	const part = "echo beside a flood"
	rows := append(quantiles(part, "bare pty", e.bare), quantiles(part, "local attach", e.local)...)
	seen := quantiles(part, "observer at the host", e.observer)
	seen[2] = seen[2].slower(floorEchoFlood, alone, referenceEcho)
	return append(append(rows, seen...), row{Part: part, Name: "the flood meanwhile", Value: rate, Unit: "MB/s"})
}

func quantiles(part, name string, values []float64) []row {
	var rows []row
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}} {
		rows = append(rows, row{Part: part, Name: name + ", " + q.name, Value: quantile(values, q.at), Unit: "ms"})
	}
	return rows
}

// measureEchoes types keys at both places in turn.
func measureEchoes(ctx context.Context, r *rig, keys int) (echoes, error) {
	var e echoes
	bare, err := newBareKeyboard()
	if err != nil {
		return e, err
	}
	defer bare.close()
	id, uri, err := r.start(ctx, echoing...)
	if err != nil {
		return e, err
	}
	lent, err := newKeyboard(ctx, r, id, uri)
	if err != nil {
		return e, err
	}
	defer lent.close()
	for left := keys; left > 0; left -= keysInTurn {
		if e.bare, err = bare.times(e.bare, min(left, keysInTurn)); err != nil {
			return e, err
		}
		for n := range min(left, keysInTurn) {
			near, far, err := lent.press(ctx, key(n))
			if err != nil {
				return e, fmt.Errorf("lent terminal: %w", err)
			}
			e.local, e.observer = append(e.local, millis(near)), append(e.observer, millis(far))
		}
	}
	return e, nil
}

// key waits for 1 to 6 ms, less than between keys of a fast typist, and returns key n.
func key(n int) byte {
	time.Sleep(time.Duration(1000+rand.IntN(5000)) * time.Microsecond)
	return byte('a' + n%26)
}

// bareKeyboard types at a pty of this process, without tether.
type bareKeyboard struct {
	pty *pty.PTY
	buf []byte
}

func newBareKeyboard() (*bareKeyboard, error) {
	p, err := pty.Start(pty.Command{Path: echoing[0], Args: echoing, Env: os.Environ()})
	if err != nil {
		return nil, err
	}
	k := &bareKeyboard{pty: p, buf: make([]byte, 4<<10)}
	for seen := ""; !strings.HasSuffix(seen, "ready"); {
		n, err := p.Read(k.buf)
		if err != nil {
			k.close()
			return nil, err
		}
		seen += string(k.buf[:n])
	}
	return k, nil
}

func (k *bareKeyboard) press(key byte) (time.Duration, error) {
	began := time.Now()
	if _, err := k.pty.Write([]byte{key}); err != nil {
		return 0, err
	}
	n, err := k.pty.Read(k.buf)
	took := time.Since(began)
	if err == nil && (n != 1 || k.buf[0] != key) {
		err = fmt.Errorf("typed %q, got %q", key, k.buf[:n])
	}
	return took, err
}

// times types keys and adds how long the echo of each took to all, in ms.
func (k *bareKeyboard) times(all []float64, keys int) ([]float64, error) {
	for n := range keys {
		took, err := k.press(key(n))
		if err != nil {
			return all, fmt.Errorf("bare pty: %w", err)
		}
		all = append(all, millis(took))
	}
	return all, nil
}

// bareEchoes returns how long the echo of keys at a pty of this process took, in ms.
func bareEchoes(keys int) ([]float64, error) {
	k, err := newBareKeyboard()
	if err != nil {
		return nil, err
	}
	defer k.close()
	return k.times(nil, keys)
}

func (k *bareKeyboard) close() {
	ctx, cancel := context.WithTimeout(context.Background(), keyTimeout)
	defer cancel()
	_ = k.pty.Kill(ctx, 0) // a process that cannot be killed is reported elsewhere
	_ = k.pty.Close()
}

// arrival is one piece of output and the time of its arrival.
type arrival struct {
	text string
	at   time.Time
}

// keyboard is an attachment to a terminal that echoes, and perhaps an observer of it.
type keyboard struct {
	rig      *rig
	id       string
	near     *localclient.Attachment
	far      *observer    // nil for none
	nearCame chan arrival // sent by the goroutine readNear, which closes it
	farCame  chan arrival // sent by the observer's goroutine; never closed
}

// newKeyboard attaches to the terminal id, and observes it as uri; "" means no observer.
func newKeyboard(ctx context.Context, r *rig, id, uri string) (*keyboard, error) {
	k := &keyboard{rig: r, id: id, nearCame: make(chan arrival, 64), farCame: make(chan arrival, 64)}
	var err error
	k.near, err = r.door.Attach(ctx, id, localclient.AttachOptions{FromStart: true})
	if err != nil {
		return nil, err
	}
	go k.readNear()
	if uri != "" {
		k.far, err = r.watch(ctx, uri, func(p []byte) { k.farCame <- arrival{string(p), time.Now()} })
	}
	if err == nil {
		_, _, err = k.echo("ready", time.Now())
	}
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

func (k *keyboard) readNear() {
	defer close(k.nearCame)
	for {
		m, err := k.near.Next(context.Background())
		if err != nil {
			return
		}
		if len(m.Data) > 0 {
			k.nearCame <- arrival{string(m.Data), time.Now()}
		}
	}
}

// press types a key and returns how long the echo took to the local attachment and to the
// observer.
func (k *keyboard) press(ctx context.Context, key byte) (near, far time.Duration, err error) {
	began := time.Now()
	if err := k.near.Write(ctx, []byte{key}); err != nil {
		return 0, 0, err
	}
	return k.echo(string(key), began)
}

// echo waits for want at both places and returns how long after began it came.
func (k *keyboard) echo(want string, began time.Time) (near, far time.Duration, err error) {
	atNear, err := await(k.nearCame, want)
	if err != nil {
		return 0, 0, fmt.Errorf("local attach: %w", err)
	}
	if k.far == nil {
		return atNear.Sub(began), 0, nil
	}
	atFar, err := await(k.farCame, want)
	if err != nil {
		return 0, 0, fmt.Errorf("observer: %w", err)
	}
	return atNear.Sub(began), atFar.Sub(began), nil
}

// await waits for want and returns when its last piece arrived. Other output is an error.
func await(came <-chan arrival, want string) (time.Time, error) {
	timeout := time.NewTimer(keyTimeout)
	defer timeout.Stop()
	for got := ""; ; {
		select {
		case a, ok := <-came:
			if !ok {
				return time.Time{}, errors.New("the connection ended")
			}
			if got += a.text; got == want {
				return a.at, nil
			}
			if !strings.HasPrefix(want, got) {
				return time.Time{}, fmt.Errorf("typed %q, got %q", want, got)
			}
		case <-timeout.C:
			return time.Time{}, fmt.Errorf("%q did not come within %v", want, keyTimeout)
		}
	}
}

func (k *keyboard) close() {
	ctx, cancel := context.WithTimeout(context.Background(), keyTimeout)
	defer cancel()
	_ = k.rig.kill(ctx, k.id) // rig.close kills it, too
	k.near.Close()
	if k.far != nil {
		k.far.close()
	}
}
