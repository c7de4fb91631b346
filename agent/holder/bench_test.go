package holder_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"tether/agent/holder"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// end is either way to a child.
type end interface {
	io.ReadWriteCloser
	WaitReadable() error
	Wait() pty.Exit
	Kill(ctx context.Context, grace time.Duration) error
}

// ways are how a daemon may have a child: on a pty of its own, or through a holder.
var ways = []struct {
	name  string
	start func(b *testing.B, o holder.Options, id string, c pty.Command) end
}{
	{"direct", func(b *testing.B, _ holder.Options, _ string, c pty.Command) end {
		return must.Get(pty.Start(c))(b)
	}},
	{"holder", func(b *testing.B, o holder.Options, id string, c pty.Command) end {
		h := spawn(b, o, holder.Spec{ID: id, Command: c})
		stream(b, h, 0)
		return h
	}},
}

// BenchmarkDrain is the throughput of a flooding child either way, run in turns so that
// other load of the machine affects both.
func BenchmarkDrain(b *testing.B) {
	const lines = 2_000_000
	o := options(b)
	took := make([][]time.Duration, len(ways))
	for n := 0; b.Loop(); n++ {
		for w, way := range ways {
			began := time.Now()
			p := way.start(b, o, fmt.Sprint("d", n), countCommand(b, lines))
			if total := drain(p); total != 10*lines {
				b.Fatalf("%d bytes, want %d", total, 10*lines)
			}
			took[w] = append(took[w], time.Since(began))
			p.Wait()
			p.Close()
		}
	}
	for w, way := range ways {
		slices.Sort(took[w])
		b.ReportMetric(10*lines/took[w][0].Seconds()/1e6, way.name+"-best-MB/s")
		b.ReportMetric(10*lines/took[w][len(took[w])/2].Seconds()/1e6, way.name+"-p50-MB/s")
	}
}

// drain reads as agent/term does.
func drain(p end) (total int) {
	var buf [32 << 10]byte
	for {
		if p.WaitReadable() != nil {
			return total
		}
		n, err := p.Read(buf[:])
		total += n
		if err != nil {
			return total
		}
	}
}

// BenchmarkEcho is the time from a key to its echo by the terminal itself.
func BenchmarkEcho(b *testing.B) {
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			p := way.start(b, options(b), "e", sh("stty -echo raw; echo ready; exec cat"))
			buf := make([]byte, 4096)
			for got := ""; len(got) < 6; {
				n := must.Get(p.Read(buf))(b)
				got += string(buf[:n])
			}
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				must.Get(p.Write([]byte{'x'}))(b)
				must.Get(p.Read(buf))(b)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			_ = p.Kill(context.Background(), 0)
			p.Close()
		})
	}
}

// BenchmarkSpawn is the time until a child runs and its terminal is connected.
func BenchmarkSpawn(b *testing.B) {
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			o := options(b)
			for n := 0; b.Loop(); n++ {
				p := way.start(b, o, fmt.Sprint("s", n), sh("exit 0"))
				b.StopTimer()
				_, _ = io.Copy(io.Discard, p)
				p.Wait()
				if h, ok := p.(*holder.Client); ok {
					_ = h.Forget(context.Background())
				}
				p.Close()
				b.StartTimer()
			}
		})
	}
}
