package term_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// fakePool is a pool with fake children by the terminal's name.
type fakePool struct {
	t        *testing.T
	pool     *term.Pool
	mu       sync.Mutex
	children map[term.ID]*testkit.Child
}

func newFakePool(t *testing.T, o term.Options) *fakePool {
	c := &fakePool{t: t, children: map[term.ID]*testkit.Child{}}
	o.Start = func(id term.ID, _ pty.Command) (term.PTY, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.children[id] = testkit.NewChild()
		return c.children[id], nil
	}
	c.pool = term.NewPool(o)
	t.Cleanup(func() {
		check.OK(t, c.pool.Close(context.Background()))
	})
	return c
}

func (c *fakePool) spawn(a term.Actor, s term.Spec) (term.Handle, *testkit.Child) {
	c.t.Helper()
	s.Command, s.Cwd = []string{"fake"}, testkit.Abs("/")
	h := must.Get(c.pool.As(a).Spawn(s))(c.t)
	c.mu.Lock()
	defer c.mu.Unlock()
	return h, c.children[h.ID()]
}

// kept is the part of the terminal's output that can still be read.
func kept(t *testing.T, h term.Handle) string {
	t.Helper()
	r := reader(t, h, output.ReaderOptions{View: output.ViewRaw, Tail: 1 << 30})
	var b strings.Builder
	buf := make([]byte, 64<<10)
	for {
		ev, ok, err := r.TryNext(buf)
		if err == io.EOF || err == nil && !ok {
			return b.String()
		}
		must.Do(t, err)
		b.Write(ev.Data)
	}
}

// chunks are single writes of flooding children: 32 KiB of numbered lines.
var chunks = sync.OnceValue(func() (all [64]string) {
	for n := range all {
		var b strings.Builder
		for i := range 2048 {
			fmt.Fprintf(&b, "%07d %07d\n", n, i)
		}
		all[n] = b.String()
	}
	return all
})

func chunk(n int) string { return chunks()[n] }

func TestManyFloodsStayWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const floods, each, bound = 50, 12, 5 << 20 // 384 KiB each
		var before, m runtime.MemStats
		chunk(0) // all of them are made once
		runtime.GC()
		runtime.ReadMemStats(&before) // other tests may have left something
		c := newFakePool(t, term.Options{TotalLogBytes: bound})
		idle, quiet := c.spawn(term.User, term.Spec{})
		quiet.Print("$ ")
		var wg sync.WaitGroup
		var all []term.Handle
		for range floods {
			h, child := c.spawn(term.User, term.Spec{})
			all = append(all, h)
			wg.Go(func() {
				for n := range each {
					child.Print(chunk(n)) // blocks until it is read: nobody is stopped
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		used, _ := c.pool.Memory()
		if used > bound {
			t.Errorf("%d bytes are kept, more than %d", used, bound)
		}
		if used < bound/4 {
			t.Errorf("only %d bytes of %d are used", used, bound)
		}
		runtime.GC()
		runtime.ReadMemStats(&m)
		if grown, limit := int64(m.HeapAlloc)-int64(before.HeapAlloc), int64(bound+8<<20); grown > limit {
			t.Errorf("the heap has grown by %d bytes, more than %d", grown, limit)
		}
		whole := ""
		for n := range each {
			whole += chunk(n)
		}
		for _, h := range all {
			text := kept(t, h)
			if len(text) < 60<<10 || !strings.HasSuffix(whole, text) {
				t.Errorf("%s keeps %d bytes, which are not the newest", h.ID(), len(text))
			}
		}
		if text := kept(t, idle); text != "$ " {
			t.Errorf("the idle terminal keeps %q", text)
		}
	})
}

func TestExitedTerminalsGiveWayFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mib = 32 // chunks that fill a log of 1 MiB
		c := newFakePool(t, term.Options{TotalLogBytes: 4<<20 + 128<<10})
		flood := func(most int) (term.Handle, *testkit.Child) {
			h, child := c.spawn(term.User, term.Spec{})
			for n := range most {
				child.Print(chunk(n))
			}
			synctest.Wait()
			return h, child
		}
		first, child := flood(mib)
		child.End(0)
		time.Sleep(time.Second)
		second, child := flood(mib)
		child.End(0)
		time.Sleep(time.Second)
		running, _ := flood(mib)
		sizes := func() string {
			return fmt.Sprint(first.Info().Retained>>10, " ", second.Info().Retained>>10, " ", running.Info().Retained>>10)
		}
		if got := sizes(); got != "1024 1024 1024" {
			t.Fatalf("kept before there is need: %s", got)
		}
		flood(mib + 1) // takes 2 MiB
		if got := sizes(); got != "64 1024 1024" {
			t.Errorf("after one more: %s KiB, want the first to give way", got)
		}
		flood(mib + 1)
		if got := sizes(); got != "64 64 1024" {
			t.Errorf("after another one: %s KiB, want the second to give way", got)
		}
		if text := kept(t, first); !strings.HasSuffix(chunk(mib-1), text) && !strings.HasSuffix(text, chunk(mib-1)) {
			t.Error("what is left of the first is not its end")
		}
	})
}

func TestRoomIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakePool(t, term.Options{TotalLogBytes: 1 << 20, LogBytes: 1 << 20, KeepExited: 1, KeepFor: time.Minute})
		h, child := c.spawn(term.User, term.Spec{})
		other, otherChild := c.spawn(term.User, term.Spec{})
		for n := range 64 {
			child.Print(chunk(n))
			otherChild.Print(chunk(n))
		}
		synctest.Wait()
		if a, b := h.Info().Retained, other.Info().Retained; a > 1<<19 || b > 1<<19 {
			t.Errorf("two keep %d and %d bytes of 1 MiB", a, b)
		}
		otherChild.End(0)
		time.Sleep(2 * time.Minute) // forgotten
		for n := range 64 {
			child.Print(chunk(n))
		}
		synctest.Wait()
		if a := h.Info().Retained; a < 1<<19 {
			t.Errorf("the one that is left keeps %d bytes of 1 MiB", a)
		}
		child.End(0)
		time.Sleep(2 * time.Minute)
		if used, _ := c.pool.Memory(); used != 0 {
			t.Errorf("without terminals %d bytes are counted", used)
		}
	})
}

// State that takes more memory than its bytes counts with its real memory.
func TestMarksCountToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 2 << 20
		c := newFakePool(t, term.Options{TotalLogBytes: bound})
		for range 4 {
			_, child := c.spawn(term.User, term.Spec{})
			marks := strings.Repeat("\x1b]0;a\a\x1b]0;b\a\xff\x1b[c", 1500)
			for range testkit.Load(20, 6) {
				child.Print(marks)
			}
		}
		synctest.Wait()
		if used, _ := c.pool.Memory(); used > bound || used < bound/8 {
			t.Errorf("%d bytes are kept, the bound is %d", used, bound)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if limit := uint64(2*bound + 16<<20); m.HeapAlloc > limit {
			t.Errorf("the heap has %d bytes, more than %d", m.HeapAlloc, limit)
		}
	})
}

// A reader that held its place in a log that had to shrink is told.
func TestTrimmedReaderGetsAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakePool(t, term.Options{TotalLogBytes: 600 << 10})
		h, child := c.spawn(term.Agent("a"), term.Spec{})
		r := reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true})
		for n := range 16 {
			child.Print(chunk(n))
		}
		_, other := c.spawn(term.User, term.Spec{})
		for n := range 64 {
			other.Print(chunk(n))
		}
		synctest.Wait()
		buf := make([]byte, 1<<20)
		_, err := r.Next(t.Context(), buf)
		lagged, ok := err.(*output.LaggedError)
		if !ok {
			t.Fatalf("error %v, want a LaggedError", err)
		}
		for at := lagged.Lost; at < 16*32<<10; { // the child may be held before its last piece
			ev, err := r.Next(t.Context(), buf)
			if err != nil || ev.Off != at {
				t.Fatalf("then %d bytes at %d, %v; want the one at %d", len(ev.Data), ev.Off, err, at)
			}
			at += int64(len(ev.Data))
		}
	})
}

// drawing is output that fills large screens with cells of their own and goes on: 500x500
// cells take 4 MB.
func drawing(n int) string {
	var b strings.Builder
	for y := range 500 {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[3%dm%s", y+1, (y+n)%8, strings.Repeat(string(rune('a'+n%26)), 500))
	}
	return b.String()
}

// The screens that terminals keep of dropped output are within the bound, too: too large
// ones are given up, and are unknown then.
func TestScreensCountToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, many = 4 << 20, 8
		c := newFakePool(t, term.Options{TotalLogBytes: bound, LogBytes: 256 << 10})
		var small, large []term.Handle
		for i := range many {
			h, child := c.spawn(term.User, term.Spec{Size: term.Size{Cols: 500, Rows: 500}})
			large = append(large, h)
			for n := range 4 {
				child.Print(drawing(i + n))
			}
			other, lines := c.spawn(term.User, term.Spec{})
			small = append(small, other)
			lines.Print("\x1b[HTHE HEADER")
			for range 40 {
				lines.Print(strings.Repeat("\x1b[4;1H\x1b[Kcounter", 500))
			}
		}
		synctest.Wait()
		if used, _ := c.pool.Memory(); used > bound {
			t.Errorf("%d bytes are kept, the bound is %d", used, bound)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if limit := uint64(2*bound + 16<<20); m.HeapAlloc > limit {
			t.Errorf("the heap has %d bytes, more than %d", m.HeapAlloc, limit)
		}
		oldest := func(h term.Handle) output.Screen {
			return must.Get(reader(t, h, output.ReaderOptions{View: output.ViewScreen}).Oldest())(t)
		}
		for _, h := range small {
			if at := oldest(h); !at.Exact || !strings.Contains(string(at.Replay), "THE HEADER") {
				t.Errorf("of a small terminal the screen is %q, exact %t", at.Replay, at.Exact)
			}
		}
		lost := 0
		for _, h := range large {
			if !oldest(h).Exact {
				lost++
			}
		}
		if lost == 0 {
			t.Error("no screen was given up")
		}
	})
}

// A terminal keeps more for a reader that reads on, and gives it back; one that does not
// read gets no more than is configured.
func TestMoreIsKeptForAReaderThatReads(t *testing.T) {
	const limit = 64 << 10
	synctest.Test(t, func(t *testing.T) {
		pool, h, v, _ := paced(t, limit)
		defer func() { pool.Close(t.Context()); v.kill() }()
		print := func(kib int) {
			v.print(strings.Repeat(line, kib))
			synctest.Wait()
		}
		frozen := reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true})
		print(100)
		if got := h.Info().Retained; got > limit {
			t.Errorf("%d bytes are kept for a reader that does not read, want %d at most", got, limit)
		}
		frozen.Close()

		r := reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true, Tail: -1})
		lost := int64(0)
		for range 8 {
			print(24)
			lost += readTo(t, r, r.Offset()+1)
		}
		if lost += readTo(t, r, 292<<10); lost > 0 {
			t.Errorf("%d bytes were lost to a reader that was 160 KiB behind", lost)
		}
		if got := h.Info().Retained; got > limit {
			t.Errorf("%d bytes are kept for a reader that has caught up, want %d at most", got, limit)
		}
	})
}
