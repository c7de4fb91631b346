package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"tether/ahp/client"
)

// flood is a lent terminal that prints endlessly, and an observer of it in another
// process.
type flood struct {
	rig      *rig
	id, uri  string
	observer *exec.Cmd
	bytes    int64 // printed until began
	began    time.Time
}

func startFlood(ctx context.Context, r *rig) (*flood, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	id, uri, err := r.start(ctx, self, childArg, "coloured", "0")
	if err != nil {
		return nil, err
	}
	f := &flood{rig: r, id: id, uri: uri, observer: r.command([]string{self, childArg, "observe", r.host.URL, uri})}
	out, err := f.observer.StdoutPipe()
	if err == nil {
		err = f.observer.Start()
	}
	if err != nil {
		return nil, err
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // the observer prints when it receives output
		f.stop()
		return nil, fmt.Errorf("the flood's observer: %w", err)
	}
	if err := r.typeLine(ctx, id); err != nil {
		f.stop()
		return nil, err
	}
	f.began = time.Now()
	f.bytes, err = f.printed(ctx)
	return f, err
}

func (f *flood) printed(ctx context.Context) (int64, error) {
	t, err := f.rig.door.Find(ctx, f.id)
	return t.Bytes, err
}

// rate returns the rate of the flood since began, in MB/s.
func (f *flood) rate(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	now, err := poll(ctx, func() (int64, error) {
		now, err := f.printed(ctx)
		if err == nil && now == f.bytes {
			err = errNotYet
		}
		return now, err
	})
	return float64(now-f.bytes) / 1e6 / time.Since(f.began).Seconds(), err
}

func (f *flood) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	_ = f.rig.kill(ctx, f.id) // rig.close kills it, too
	_ = f.observer.Process.Kill()
	_ = f.observer.Wait()
}

// observeForever is the flood's observer. It prints a line when it first receives output,
// and returns when the terminal has exited.
func observeForever(url, uri string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	told := false
	r := &rig{host: client.Endpoint{URL: url}}
	o, err := r.watch(ctx, uri, func([]byte) {
		if !told {
			told = true
			fmt.Println("seen")
		}
	})
	if err != nil {
		return err
	}
	<-o.ended
	return o.problem()
}
