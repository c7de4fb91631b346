package ring_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"tether/agent/ring"
)

func ExampleLog() {
	l := ring.New(4096)
	l.Append([]byte("hello, "))
	l.Append([]byte("world"))
	p := make([]byte, 5)
	n := l.ReadAt(p, 7)
	fmt.Printf("%s of [%d, %d)\n", p[:n], l.Start(), l.End())
	// Output: world of [0, 12)
}

func content(l *ring.Log) []byte {
	p := make([]byte, l.End()-l.Start())
	return p[:l.ReadAt(p, l.Start())]
}

func TestLimitIsRoundedUp(t *testing.T) {
	for _, c := range []struct{ ask, want int }{{0, 4096}, {4096, 4096}, {4097, 8192}, {1 << 20, 1 << 20}} {
		if got := ring.New(c.ask).Limit(); got != c.want {
			t.Errorf("New(%d).Limit() = %d, want %d", c.ask, got, c.want)
		}
	}
}

func TestAppendLongerThanLimitKeepsTail(t *testing.T) {
	l := ring.New(4096)
	l.Append([]byte("before"))
	p := bytes.Repeat([]byte("0123456789"), 1000)
	l.Append(p)
	if l.Start() != 6+10000-4096 || l.End() != 10006 {
		t.Fatalf("range = [%d, %d), want [%d, %d)", l.Start(), l.End(), 6+10000-4096, 10006)
	}
	if got := content(l); !bytes.Equal(got, p[10000-4096:]) {
		t.Errorf("content is not the tail of what was appended")
	}
}

func TestReadOutsideGivesNothing(t *testing.T) {
	l := ring.NewAt(4096, 100)
	l.Append([]byte("abc"))
	p := make([]byte, 8)
	for _, off := range []int64{-1, 0, 99, 103, 1 << 40} {
		if n := l.ReadAt(p, off); n != 0 {
			t.Errorf("ReadAt(%d) = %d bytes, want 0", off, n)
		}
	}
	if n := l.ReadAt(p, 101); string(p[:n]) != "bc" {
		t.Errorf("ReadAt(101) = %q, want bc", p[:n])
	}
}

func TestTrimClamps(t *testing.T) {
	l := ring.New(4096)
	l.Append([]byte("abcdef"))
	l.Trim(2)
	l.Trim(1) // never back
	if l.Start() != 2 || string(content(l)) != "cdef" {
		t.Fatalf("after Trim(2), Trim(1): start %d, content %q", l.Start(), content(l))
	}
	l.Trim(99)
	if l.Start() != 6 || l.End() != 6 {
		t.Errorf("after Trim(99): [%d, %d), want [6, 6)", l.Start(), l.End())
	}
}

// TestModel compares a log with the plain stream it was fed, over random appends and
// trims, across growth and many wraps.
func TestModel(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		first := rnd.Int64N(1 << 40)
		l := ring.NewAt(4096<<rnd.IntN(3), first)
		var all []byte
		for range 200 {
			p := make([]byte, rnd.IntN(3000))
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
			l.Append(p)
			all = append(all, p...)
			if rnd.IntN(10) == 0 {
				l.Trim(l.Start() + rnd.Int64N(500))
			}
			if want := first + int64(len(all)); l.End() != want {
				t.Fatalf("seed %d: End = %d, want %d", seed, l.End(), want)
			}
			if kept := l.End() - l.Start(); kept > int64(l.Limit()) {
				t.Fatalf("seed %d: %d bytes retained, limit %d", seed, kept, l.Limit())
			}
			if got, want := content(l), all[l.Start()-first:]; !bytes.Equal(got, want) {
				t.Fatalf("seed %d: content differs at [%d, %d)", seed, l.Start(), l.End())
			}
		}
	}
}

func TestAppendDoesNotAllocateWhenGrown(t *testing.T) {
	l := ring.New(64 << 10)
	p := make([]byte, 4095)
	for range 64 {
		l.Append(p)
	}
	if n := testing.AllocsPerRun(100, func() { l.Append(p) }); n != 0 {
		t.Errorf("Append allocates %v times, want 0", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	l := ring.New(4 << 20)
	p := make([]byte, 4095)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		l.Append(p)
	}
}

func TestAppendNothingAtAnOffset(t *testing.T) {
	l := ring.NewAt(0, 100)
	l.Append(nil)
	if l.Start() != 100 || l.End() != 100 {
		t.Errorf("an empty log at 100 is [%d, %d) after nothing was appended", l.Start(), l.End())
	}
}

func TestSetLimit(t *testing.T) {
	l := ring.New(64 << 10)
	write := func(n int) {
		for range n {
			l.Append([]byte{byte(l.End())})
		}
	}
	check := func(what string, start, end int64, limit, most int) {
		t.Helper()
		if l.Start() != start || l.End() != end || l.Limit() != limit || l.Cap() > most {
			t.Errorf("%s: [%d, %d) of at most %d in %d bytes; want [%d, %d) of at most %d in at most %d",
				what, l.Start(), l.End(), l.Limit(), l.Cap(), start, end, limit, most)
		}
		buf := make([]byte, l.End()-l.Start())
		if n := l.ReadAt(buf, l.Start()); n != len(buf) {
			t.Errorf("%s: read %d bytes of %d", what, n, len(buf))
		}
		for i, b := range buf {
			if b != byte(l.Start()+int64(i)) {
				t.Fatalf("%s: byte %d is %d", what, l.Start()+int64(i), b)
			}
		}
	}
	l.SetLimit(1 << 10)
	check("empty", 0, 0, 4<<10, 0)
	l.SetLimit(64 << 10)
	write(100_000)
	check("full", 100_000-64<<10, 100_000, 64<<10, 64<<10)
	l.SetLimit(10_000)
	check("shrunk", 100_000-16<<10, 100_000, 16<<10, 16<<10)
	write(5)
	check("shrunk and written", 100_005-16<<10, 100_005, 16<<10, 16<<10)
	l.Trim(100_000)
	l.SetLimit(8 << 10)
	check("trimmed and shrunk", 100_000, 100_005, 8<<10, 8<<10)
	l.SetLimit(32 << 10)
	check("raised", 100_000, 100_005, 32<<10, 8<<10)
	write(40_000)
	check("raised and written", 140_005-32<<10, 140_005, 32<<10, 32<<10)
}
