package pty_test

import (
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// The figures in docs/PERFORMANCE.md:
//
//	scripts/test-windows.sh -run - -bench . -v ./platform/pty

// through runs a command to the end of its output and returns how much that was.
func through(b *testing.B, c pty.Command) int64 {
	p, err := pty.Start(c)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer p.Close()
	n, err := io.CopyBuffer(io.Discard, onlyReader{p}, make([]byte, 64<<10))
	if exit := p.Wait(); err != nil || exit.Code != 0 {
		b.Errorf("exit %+v, %v", exit, err)
	}
	return n
}

// onlyReader keeps io.Copy from other ways than Read.
type onlyReader struct{ io.Reader }

// BenchmarkSpawn starts a program that ends at once: until Start has returned, and until
// the end of its output.
func BenchmarkSpawn(b *testing.B) {
	var started, ended []time.Duration
	for b.Loop() {
		began := time.Now()
		p := must.Get(pty.Start(helper("code", "0")))(b)
		started = append(started, time.Since(began))
		if _, err := io.Copy(io.Discard, p); err != nil {
			b.Error(err)
		}
		ended = append(ended, time.Since(began))
		p.Close()
	}
	b.ReportMetric(p50(started), "ms-started")
	b.ReportMetric(p50(ended), "ms-ended")
}

func p50(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}

// BenchmarkOutput is the console's throughput for plain lines.
func BenchmarkOutput(b *testing.B) {
	const lines = 100_000
	var n int64
	for b.Loop() {
		n += through(b, helper("lines", strconv.Itoa(lines)))
	}
	b.SetBytes(n / int64(b.N))
}

// BenchmarkTogether starts 20 terminals at once and waits for all of them.
func BenchmarkTogether(b *testing.B) {
	const together = 20
	for b.Loop() {
		var all sync.WaitGroup
		for range together {
			all.Go(func() { through(b, helper("code", "0")) })
		}
		all.Wait()
	}
}

// BenchmarkProcess is BenchmarkSpawn without a terminal: the part that Wine or Windows
// costs.
func BenchmarkProcess(b *testing.B) {
	for b.Loop() {
		cmd := self("code", "0")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, nil, nil
		must.Do(b, cmd.Run())
	}
}
