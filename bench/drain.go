package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"tether/platform/pty"
)

// drained is the cost of draining a child: wall time, and CPU time of this process.
type drained struct{ took, cpu time.Duration }

// drain runs the child on a pty and discards its output, as the daemon's pump would
// without log and readers. It checks that all output arrived.
func drain(w work) (drained, error) {
	argv, err := w.argv()
	if err != nil {
		return drained{}, err
	}
	p, err := pty.Start(pty.Command{Path: argv[0], Args: argv, Env: os.Environ()})
	if err != nil {
		return drained{}, err
	}
	defer p.Close()
	var got text
	var began time.Time
	var before time.Duration
	buf := make([]byte, 32<<10)
	for got.bytes < w.want.bytes {
		n, err := p.Read(buf)
		got.add(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			return drained{}, fmt.Errorf("the child ended after %d of %d bytes", got.bytes, w.want.bytes)
		case err != nil:
			return drained{}, err
		}
		if began.IsZero() && got.bytes >= int64(len(onTerminal([]byte(childReady)))) {
			before, _ = cpuTime(os.Getpid()) // 0 where the system does not report it; rows with CPU time then fail elsewhere
			began = time.Now()
			if _, err := p.Write([]byte{'\n'}); err != nil {
				return drained{}, err
			}
		}
	}
	took := time.Since(began)
	after, _ := cpuTime(os.Getpid())
	p.Wait()
	if got != w.want {
		return drained{}, fmt.Errorf("drained %d bytes with sum %08x, want %d with %08x", got.bytes, got.sum, w.want.bytes, w.want.sum)
	}
	return drained{took, after - before}, nil
}
