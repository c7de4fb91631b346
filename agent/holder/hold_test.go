package holder_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/flow"
	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/platform/rawio"
)

// fake is a child without a process.
type fake struct {
	*testkit.Child
	blocked chan struct{} // if not nil, Write waits for it
	tough   bool          // Kill does nothing
	leaves  bool          // Kill ends the child, and then gives the processes that it has left their grace
}

func (f fake) Read(p []byte) (int, error) {
	if err := f.WaitReadable(); err != nil {
		return 0, err
	}
	return f.Child.Read(p)
}

func (f fake) Write(p []byte) (int, error) {
	if f.blocked != nil {
		<-f.blocked
	}
	return f.Child.Write(p)
}

func (f fake) Kill(ctx context.Context, grace time.Duration) error {
	if f.tough {
		return nil
	}
	err := f.Child.Kill(ctx, grace)
	if f.leaves {
		<-ctx.Done()
		<-time.After(time.Second) // until they are gone
	}
	return err
}

// bench is a holder in a bubble.
type bench struct {
	t     *testing.T
	child fake
	held  *holder.Held
	tasks sync.WaitGroup
}

const logBytes = 64 << 10 // the smallest log

func newBench(t *testing.T, s holder.Spec) *bench {
	b := &bench{t: t, child: fake{Child: testkit.NewChild()}}
	b.start(s)
	return b
}

func (b *bench) start(s holder.Spec) { b.hold(s, b.child) }

// hold is start with something around the child.
func (b *bench) hold(s holder.Spec, c holder.Child) {
	b.t.Helper()
	s.ID, s.Command.Path = "x", "x"
	if s.LogBytes == 0 {
		s.LogBytes = logBytes
	}
	var err error
	if b.held, err = holder.Hold(s, c, func() {}); err != nil {
		b.t.Fatal(err)
	}
	b.tasks.Go(b.held.Run)
}

// conn is a raw connection of a daemon.
func (b *bench) conn() net.Conn {
	ours, theirs := net.Pipe()
	b.tasks.Go(func() { b.held.Serve(theirs) })
	return ours
}

func (b *bench) dial() *holder.Client { return b.dialAs(nil) }

// dialAs is a connection of a daemon that has others.
func (b *bench) dialAs(inputs *flow.Typing) *holder.Client {
	b.t.Helper()
	return must.Get(holder.ConnectAs(context.Background(), b.conn(), inputs))(b.t)
}

func (b *bench) stream(off int64) *holder.Client {
	b.t.Helper()
	c := b.dial()
	stream(b.t, c, off)
	return c
}

// end forgets the holder and waits until nothing of it runs.
func (b *bench) end() {
	b.t.Helper()
	b.child.End(0)
	c := b.dial()
	c.Wait()
	check.OK(b.t, c.Forget(context.Background()))
	b.tasks.Wait()
}

// print makes the child print n bytes of the count at off, in the background, in pieces
// as a pty gives them; the channel is closed when all were taken.
func (b *bench) print(off, n int64) <-chan struct{} {
	var text []byte
	for line := off / 10; line <= (off+n)/10; line++ {
		text = append(counter(text, int(line)), '\r', '\n')
	}
	text = text[off%10 : off%10+n]
	done := make(chan struct{})
	b.tasks.Go(func() {
		defer close(done)
		for len(text) > 0 {
			k := min(len(text), 4096)
			b.child.Print(string(text[:k]))
			text = text[k:]
		}
	})
	return done
}

// isDone reports whether ch is closed once everything has settled.
func isDone(ch <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (b *bench) wantBounds(base, end int64) {
	b.t.Helper()
	synctest.Wait()
	if gotBase, gotEnd := b.held.Bounds(); gotBase != base || gotEnd != end {
		b.t.Errorf("the log has %d to %d, want %d to %d", gotBase, gotEnd, base, end)
	}
}

// take reads n bytes of the count.
func (b *bench) take(c *holder.Client, off, n int64) {
	b.t.Helper()
	buf := make([]byte, n)
	got, err := io.ReadFull(c, buf)
	if wrong := checkCount(buf[:got], off); err != nil || wrong >= 0 {
		b.t.Fatalf("read %d of %d bytes at %d: %v, wrong at %d", got, n, off, err, wrong)
	}
}

func (b *bench) wantGap(c *holder.Client, from, to int64) {
	b.t.Helper()
	n, err := c.Read(make([]byte, 100))
	var gap *holder.GapError
	if n != 0 || !errors.As(err, &gap) || gap.From != from || gap.To != to || gap.Size() != to-from {
		b.t.Fatalf("read %d bytes, %v; want a gap from %d to %d", n, err, from, to)
	}
}

// takeToGap reads the count from 0 on up to a gap.
func (b *bench) takeToGap(c *holder.Client) (n int64, gap *holder.GapError) {
	b.t.Helper()
	var got bytes.Buffer
	_, err := io.Copy(&got, c)
	if !errors.As(err, &gap) || checkCount(got.Bytes(), 0) >= 0 {
		b.t.Fatalf("%d bytes, then %v, want a gap; wrong at %d", got.Len(), err, checkCount(got.Bytes(), 0))
	}
	return int64(got.Len()), gap
}

func TestAwayFloodIsHeldThenKnownBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		done := b.print(0, 3*logBytes)
		b.wantBounds(0, logBytes)
		time.Sleep(30*time.Second - 1)
		b.wantBounds(0, logBytes)
		time.Sleep(time.Nanosecond)
		if !isDone(done) { // the hold is over and does not come again
			t.Error("the child still waits after AwayHold")
		}
		b.wantBounds(2*logBytes, 3*logBytes)

		c := b.stream(100)
		defer c.Close()
		if c.Base() != 2*logBytes || c.End() != 3*logBytes || c.Taken() != 0 {
			t.Errorf("found %d to %d, taken %d", c.Base(), c.End(), c.Taken())
		}
		b.wantGap(c, 100, 2*logBytes)
		done = b.print(3*logBytes, 100)
		if isDone(done) {
			b.wantBounds(2*logBytes, 3*logBytes) // a daemon is here: nothing is dropped
		}
		b.take(c, 2*logBytes, logBytes+100)
	})
}

func TestDaemonInTimeLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		done := b.print(0, 3*logBytes)
		for off := int64(0); off < 3*logBytes; off += logBytes / 2 { // a daemon that is killed again and again
			time.Sleep(29 * time.Second)
			c := b.stream(off)
			b.take(c, off, logBytes/2)
			c.Close()
		}
		if !isDone(done) {
			t.Error("the child waits for nothing")
		}
	})
}

// Output that a daemon had taken when it was killed is not dropped first.
func TestAQuarterIsForTakenOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		<-b.print(0, logBytes)
		c := b.stream(0)
		b.take(c, 0, logBytes)
		if err := c.Resize(pty.Size{Cols: 1, Rows: 1}); err != nil { // output before the reply was taken
			t.Fatal(err)
		}
		_ = b.print(logBytes, 10)
		b.take(c, logBytes, 10)
		c.Close()
		done := b.print(logBytes+10, 2*logBytes)
		if isDone(done) {
			t.Error("a full log did not hold the child")
		}
		if base, _ := b.held.Bounds(); base > logBytes-logBytes/4 {
			t.Errorf("the log begins at %d", base)
		}
		c = b.stream(logBytes - logBytes/4)
		defer c.Close()
		b.take(c, logBytes-logBytes/4, 2*logBytes)
	})
}

func TestStalledDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{LogBytes: 2 * holder.Window})
		defer b.end()
		c := b.stream(0)
		defer c.Close()
		const limit, total = 2 * holder.Window, 5 * holder.Window
		done := b.print(0, total)
		b.wantBounds(0, limit)
		time.Sleep(10*time.Second - 1)
		b.wantBounds(0, limit)
		time.Sleep(time.Nanosecond)
		if !isDone(done) {
			t.Error("the child still waits after the stall time")
		}
		b.wantBounds(total-limit, total)

		from, gap := b.takeToGap(c) // output in transit
		if from == 0 || from > holder.Window || gap.From != from || gap.To != total-limit {
			t.Errorf("after %d bytes a gap from %d to %d, want one to %d", from, gap.From, gap.To, total-limit)
		}
		done = b.print(total, 8192) // it takes again, so the child waits again
		if isDone(done) {
			t.Error("the log forgot bytes that a daemon is about to take")
		}
		b.take(c, total-limit, limit+8192)
	})
}

// A daemon that takes something within each stall time loses nothing, however slow it is.
func TestSlowDaemonLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		c := b.stream(0)
		defer c.Close()
		const total = 6 * holder.Window
		done := b.print(0, total)
		for off := int64(0); off < total; off += holder.Window / 4 {
			time.Sleep(5*time.Second - 1)
			b.take(c, off, holder.Window/4)
		}
		if !isDone(done) {
			t.Error("the child waits for nothing")
		}
	})
}

// While a new daemon rebuilds its state from the history, the history stays.
func TestHistoryStaysForANewDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		<-b.print(0, logBytes)
		first := b.stream(0)
		b.take(first, 0, logBytes)
		second := b.dial()
		defer second.Close()
		if _, err := first.Read(make([]byte, 1)); !errors.Is(err, holder.ErrReplaced) {
			t.Errorf("the daemon before reads %v", err)
		}
		_ = b.print(logBytes, logBytes)
		time.Sleep(9 * time.Second)
		stream(t, second, second.Base())
		b.take(second, 0, 2*logBytes)
	})
}

// A kill waits for the child, and not for daemons that take nothing.
func TestAKilledChildIsNotHeldForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{Stall: time.Hour, AwayHold: time.Hour})
		_ = b.print(0, 2*logBytes)
		b.wantBounds(0, logBytes)
		c := b.dial()
		began := time.Now()
		must.Do(t, c.Kill(t.Context(), 0))
		if exit := c.Wait(); exit.Code != 137 || time.Since(began) > 11*time.Second {
			t.Errorf("after %v: %+v", time.Since(began), exit)
		}
		forget(t, c)
		b.tasks.Wait()
	})
}

// A terminal is forgotten while a kill still waits for what the child has left: the child
// has ended, so the kill succeeds.
func TestAKillOutlivesItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, child: fake{Child: testkit.NewChild(), leaves: true}}
		b.start(holder.Spec{})
		c := b.dial()
		killed := make(chan error, 1)
		go func() { killed <- c.Kill(t.Context(), time.Hour) }()
		c.Wait()
		forget(t, c)
		check.OK(t, <-killed)
		b.tasks.Wait()
	})
}

func TestDrainIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		feed func(b *bench)
		want time.Duration
	}{
		{"quiet", func(*bench) {}, 300 * time.Millisecond},
		{"chatter", func(b *bench) {
			for range 1000 {
				b.child.Print("x")
				<-time.After(100 * time.Millisecond)
			}
		}, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, holder.Spec{})
				c1 := b.stream(0)
				b.tasks.Go(func() { _, _ = io.Copy(io.Discard, c1) })
				b.tasks.Go(func() { c.feed(b) })
				time.Sleep(time.Second)
				began := time.Now()
				b.child.Die(3)
				if exit := c1.Wait(); exit.Code != 3 {
					t.Error(exit)
				}
				if took := time.Since(began); took > c.want {
					t.Errorf("took %v, want %v", took, c.want)
				}
				check.OK(t, c1.Forget(t.Context()))
				b.tasks.Wait()
			})
		})
	}
}

// The last output of a child that was silent for long is waited for as well, even if the
// machine delivers it slowly.
func TestLastOutputAfterASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		c := b.stream(0)
		time.Sleep(time.Hour)
		b.child.Die(3)
		time.Sleep(200 * time.Millisecond)
		b.child.Print("last words")
		if out := all(t, c); out != "last words" {
			t.Errorf("output %q", out)
		}
		if exit := c.Wait(); exit.Code != 3 {
			t.Error(exit)
		}
		check.OK(t, c.Forget(t.Context()))
		b.tasks.Wait()
	})
}

func TestExitWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		b.child.Print("last words")
		b.child.End(5)
		time.Sleep(time.Hour)
		c := b.dial()
		if exit, ok := c.Exit(); !ok || exit.Code != 5 {
			t.Errorf("exit %v, %v", exit, ok)
		}
		if at, end := c.ExitedAt(); time.Since(at) < time.Hour-time.Second || end != 10 {
			t.Errorf("exited at %v, %d", at, end)
		}
		stream(t, c, 0)
		if out := all(t, c); out != "last words" {
			t.Errorf("output %q", out)
		}
		check.OK(t, c.Resize(pty.Size{Cols: 1, Rows: 1}))
		c.Close()
		b.end()
	})
}

func TestExitWithoutADaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b := newBench(t, holder.Spec{KeepExited: 2 * time.Hour})
		b.child.End(0)
		time.Sleep(time.Hour)
		c := b.dial()
		time.Sleep(90 * time.Minute) // a daemon is there: it stays
		c.Close()
		b.tasks.Wait()
		if took := time.Since(began).Round(time.Minute); took != 4*time.Hour {
			t.Errorf("it ended after %v", took)
		}
	})
}

func TestStopEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		c := b.stream(0)
		_ = b.print(0, logBytes)
		synctest.Wait()
		b.tasks.Go(b.held.Stop)
		b.take(c, 0, 10)
		if out := all(t, c); checkCount([]byte(out), 10) >= 0 {
			t.Errorf("wrong at %d", checkCount([]byte(out), 10))
		}
		if exit := c.Wait(); exit.Code != 137 {
			t.Error(exit)
		}
		b.tasks.Wait()
		<-c.Done()
	})
}

// stubborn is a child whose leader is the first of its tree to go.
type stubborn struct {
	fake
	gone chan struct{}
}

func (s stubborn) Kill(_ context.Context, grace time.Duration) error {
	s.End(137)
	<-time.After(grace)
	close(s.gone)
	return nil
}

// A holder that must end does not go before the processes in its terminal: nothing else
// would kill those.
func TestStopOutlastsTheStubborn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stubborn{fake{Child: testkit.NewChild()}, make(chan struct{})}
		h := must.Get(holder.Hold(holder.Spec{ID: "x", Command: pty.Command{Path: "x"}}, s, func() {}))(t)
		over := make(chan struct{})
		go func() { h.Run(); close(over) }()
		go h.Stop()
		<-over
		select {
		case <-s.gone:
		default:
			t.Error("it has ended while its terminal's processes were being killed")
		}
		<-s.gone
	})
}

// exhausted is a socket in a system that has no descriptors left for a moment.
type exhausted struct {
	net.Listener
	failed bool
	conns  chan net.Conn
}

func (e *exhausted) Accept() (net.Conn, error) {
	if !e.failed {
		e.failed = true
		return nil, errors.New("too many open files")
	}
	conn, ok := <-e.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// A holder that could not accept a connection accepts the next one.
func TestAcceptGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		l := &exhausted{conns: make(chan net.Conn)}
		b.tasks.Go(func() { b.held.Accept(l) })
		ours, theirs := net.Pipe()
		select {
		case l.conns <- theirs:
			c := must.Get(holder.Connect(t.Context(), ours))(t)
			c.Close()
		case <-time.After(time.Minute):
			t.Error("nobody listens any more")
		}
		close(l.conns)
		b.end()
	})
}

// A daemon that neither reads nor goes does not keep a holder from ending.
func TestStopWithAFrozenDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		conn := b.conn()
		must.Get(greet(conn, helloOf(1, 1, "")))(t)
		b.tasks.Go(func() { b.child.Print("x") })
		began := time.Now()
		b.held.Stop()
		b.tasks.Wait()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Output that had arrived before the holder was lost can still be read, and Wait waits
// for that.
func TestLostHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, theirs := net.Pipe()
		streams := make(chan struct{})
		go func() {
			if _, err := meet(conn, helloOf(1, 1, "")); err != nil {
				t.Error(err)
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			_, _ = conn.Write(frame(0x41, strings.Repeat("\x00", 48)))
			_, _ = conn.Write(frame(0x44, ""))
			<-streams
			_, _ = conn.Write(frame(0x45, strings.Repeat("\x00", 8)+"last words"))
			conn.Close()
		}()
		c := must.Get(holder.Connect(t.Context(), theirs))(t)
		if _, err := c.Read(nil); err == nil || errors.Is(err, holder.ErrLost) {
			t.Errorf("Read before StreamFrom: %v", err)
		}
		if err := c.StreamFrom(1); err == nil {
			t.Error("streams from beyond the end")
		}
		stream(t, c, 0)
		if err := c.StreamFrom(0); err == nil {
			t.Error("streams twice")
		}
		close(streams)
		<-c.Done()
		waited := make(chan struct{})
		go func() { c.Wait(); close(waited) }()
		if isDone(waited) {
			t.Error("Wait did not wait")
		}
		check.OK(t, expect(c, "last words"))
		<-waited
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, holder.ErrLost) {
			t.Errorf("at the end: %v", err)
		}
		c.Close()
		if !errors.Is(c.Err(), holder.ErrLost) {
			t.Errorf("after Close: %v", c.Err())
		}
	})
}

// A child that does not read stops the input, of this daemon and the next, but nothing
// else.
func TestInputThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, child: fake{Child: testkit.NewChild(), blocked: make(chan struct{})}}
		b.start(holder.Spec{})
		for i := range 5 {
			c := b.dial()
			wrote := make(chan error, 1)
			go func() {
				_, err := c.Write([]byte(strings.Repeat(string('a'+rune(i)), 40<<10)))
				wrote <- err
			}()
			synctest.Wait()
			if err := c.Resize(pty.Size{Cols: 9, Rows: 9}); err != nil {
				t.Errorf("daemon %d: %v", i, err)
			}
			c.Close()
			if err := <-wrote; !errors.Is(err, holder.ErrDetached) {
				t.Errorf("daemon %d wrote: %v", i, err)
			}
		}
		synctest.Wait() // the holder knows that the last one is gone
		close(b.child.blocked)
		c := b.dial()
		if n, err := c.Write([]byte("!")); n != 1 || err != nil {
			t.Error(n, err)
		}
		if typed := b.child.Typed(); typed != strings.Repeat("a", 32<<10)+"!" {
			t.Errorf("%d bytes were typed: %.20q", len(typed), typed)
		}
		c.Close()
		b.end()
	})
}

func TestCheckpointsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		c := b.stream(0)
		for off := int64(0); off < 2*logBytes; off += 256 {
			_ = b.print(off, 256)
			b.take(c, off, 256)
			if err := c.Checkpoint(off, []byte{byte(off >> 8)}); err != nil {
				t.Fatal(off, err)
			}
		}
		c.Close()
		c = b.dial()
		defer c.Close()
		notes := c.Checkpoints()
		if len(notes) < 20 || len(notes) > 64 {
			t.Errorf("%d checkpoints", len(notes))
		}
		if first, last := notes[0].Off, notes[len(notes)-1].Off; first-c.Base() > 4096 || last != 2*logBytes-256 {
			t.Errorf("checkpoints from %d to %d, the log from %d", first, last, c.Base())
		}
		for i, n := range notes {
			if i > 0 && n.Off-notes[i-1].Off > 8192 || !bytes.Equal(n.Blob, []byte{byte(n.Off >> 8)}) {
				t.Errorf("checkpoint %d at %d: %v", i, n.Off, n.Blob)
			}
		}
	})
}

// Screens are larger than notes, go with the output that follows them, and are not told
// to a daemon that does not know them.
func TestScreensAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		c := b.stream(0)
		<-b.print(0, logBytes)
		b.take(c, 0, logBytes)
		large := bytes.Repeat([]byte("screen"), 100_000)
		for off := int64(0); off <= logBytes; off += 256 {
			must.Do(t, c.Screen(off, large[:max(len(large)*int(off/logBytes), 9)]))
		}
		if err := c.Screen(logBytes+1, large); err != nil { // is left out
			t.Fatal(err)
		}
		if err := c.Screen(0, make([]byte, 2<<20)); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
			t.Errorf("2 MiB: %v", err)
		}
		synctest.Wait()
		c.Close()
		c = b.stream(logBytes)
		all := c.Screens()
		if n := len(all); n < 20 || n > 64 || all[0].Off != 0 || all[n-1].Off != logBytes || !bytes.Equal(all[n-1].Blob, large) {
			t.Fatalf("%d screens", n)
		}
		<-b.print(logBytes, logBytes/2)
		b.take(c, logBytes, logBytes/2)
		c.Close()
		c = b.dial()
		if all := c.Screens(); len(all) == 0 || all[0].Off < c.Base() {
			t.Errorf("%d screens, the log from %d", len(all), c.Base())
		}
		c.Close()
		conn := b.conn()
		defer conn.Close()
		must.Get(greet(conn, plainHello()))(t)
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		said, _ := io.ReadAll(conn)
		if bytes.Contains(said, []byte("screenscreen")) || !bytes.Contains(said, []byte{0x44, 0, 0, 0, 0}) {
			t.Errorf("an older daemon is told %d bytes", len(said))
		}
	})
}

// Both sides read and write their socket without Go's scheduler.
func TestConnectionsAreWrapped(t *testing.T) {
	b := newBench(t, holder.Spec{})
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	ours, theirs := testkit.Connect(t, l)
	b.tasks.Go(func() { b.held.Serve(theirs) })
	c := must.Get(holder.Connect(t.Context(), ours))(t)
	holders, daemons := holder.Conns(b.held, c)
	if rawio.Wrap(holders) != holders || rawio.Wrap(daemons) != daemons {
		t.Errorf("%T and %T: one is not wrapped", holders, daemons)
	}
	c.Close()
	b.end()
}
