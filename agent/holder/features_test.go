package holder_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// Needed output stays although it was taken, also while no daemon is connected, and the
// child waits for it as it does for output that was not taken.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		<-b.print(0, logBytes)
		c := b.stream(0)
		must.Do(t, c.Keep(100))
		b.take(c, 0, logBytes)
		done := b.print(logBytes, logBytes)
		b.tasks.Go(func() { _ = c.WaitReadable() })
		if isDone(done) {
			t.Error("what is needed was dropped")
		}
		if base, _ := b.held.Bounds(); base > 100 {
			t.Errorf("the log begins at %d", base)
		}
		c.Close()
		time.Sleep(29 * time.Second) // patience counts from there on
		c = b.stream(100)
		defer c.Close()
		if c.Base() > 100 {
			t.Errorf("after the daemon's end the log begins at %d", c.Base())
		}
		must.Do(t, c.Keep(holder.NoOffset))
		b.take(c, 100, 2*logBytes-100)
		if !isDone(done) {
			t.Error("nothing is needed, and the child waits")
		}
	})
}

// Output that was read is dropped when the daemon says so, with its notes.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		<-b.print(0, 1000)
		c := b.stream(0)
		b.take(c, 0, 1000)
		must.Do(t, c.Checkpoint(400, []byte("old")))
		must.Do(t, c.Checkpoint(900, []byte("new")))
		must.Do(t, c.Drop(800))
		if base, end := b.held.Bounds(); base != 800 || end != 1000 {
			t.Errorf("the log is from %d to %d", base, end)
		}
		must.Do(t, c.Drop(5000))
		if base, end := b.held.Bounds(); base != 1000 || end != 1000 {
			t.Errorf("the log is from %d to %d", base, end)
		}
		<-b.print(1000, 10)
		b.take(c, 1000, 10)
		c.Close()
		if c = b.stream(1000); c.Base() != 1000 || len(c.Checkpoints()) != 1 {
			t.Errorf("the next daemon gets the log from %d on, and %d notes", c.Base(), len(c.Checkpoints()))
		}
		c.Close()
	})
}

// Need does not hold the child for ever.
func TestKeepIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		c := b.stream(0)
		defer c.Close()
		must.Do(t, c.Keep(0))
		<-b.print(0, logBytes-4096)
		b.take(c, 0, logBytes-4096)
		done := b.print(logBytes-4096, 8*logBytes)
		b.take(c, logBytes-4096, 4000)
		time.Sleep(9 * time.Second)
		if isDone(done) {
			t.Error("it did not wait")
		}
		time.Sleep(2 * time.Second) // the stall time
		if !isDone(done) {
			t.Error("it waits for ever, or again for what it has given up")
		}
		var gap *holder.GapError
		if _, err := io.Copy(io.Discard, c); !errors.As(err, &gap) || gap.To != 8*logBytes-4096 {
			t.Errorf("what was given up is told as %v", err)
		}
	})
}

// plainHello is the hello of a program without features.
func plainHello() []byte {
	hello := helloOf(1, 1, "")
	clear(hello[atFeatures:atNonce])
	return hello
}

// A daemon that knows nothing of it takes the place of one that needed something: nobody
// would ever say that it is over.
func TestKeepEndsWithADaemonWithoutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		defer b.end()
		c := b.stream(0)
		<-b.print(0, logBytes/2)
		b.take(c, 0, logBytes/2)
		must.Do(t, c.Keep(0))
		c.Close()
		conn := b.conn()
		defer conn.Close()
		must.Get(greet(conn, plainHello()))(t)
		b.tasks.Go(func() { _, _ = io.Copy(io.Discard, conn) })
		_, _ = conn.Write(frame(0x01, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00"))
		synctest.Wait()
		_, _ = conn.Write(frame(0x02, string(binary.BigEndian.AppendUint64(nil, logBytes/2))))
		synctest.Wait()
		if done := b.print(logBytes/2, logBytes*3/4); !isDone(done) {
			t.Error("the child waits for what nobody needs")
		}
	})
}

// A side that has not agreed to a feature does not use it.
func TestFeaturesMustBeAgreed(t *testing.T) {
	for name, p := range map[string][]byte{
		"signal": frame(0x0a, "\x00\x00\x00\x01INT"),
		"keep":   frame(0x0b, strings.Repeat("\x00", 8)),
		"until":  frame(0x0d, strings.Repeat("\x00", 8)),
		"screen": frame(0x0e, strings.Repeat("\x00", 9)),
		"feed":   frame(0x10, strings.Repeat("\x00", 13)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, holder.Spec{})
				defer b.end()
				conn := b.conn()
				must.Get(greet(conn, plainHello()))(t)
				b.tasks.Go(func() { _, _ = conn.Write(p) })
				if _, err := io.Copy(io.Discard, conn); err != nil {
					t.Error(err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // an older holder
		conn, theirs := net.Pipe()
		var tasks sync.WaitGroup
		var said strings.Builder
		tasks.Go(func() {
			if _, err := meet(conn, plainHello()); err != nil {
				t.Error(err)
			}
			tasks.Go(func() { _, _ = io.Copy(&said, conn) })
			_, _ = conn.Write(frame(0x41, strings.Repeat("\x00", 48)))
			_, _ = conn.Write(frame(0x44, ""))
		})
		c := must.Get(holder.Connect(t.Context(), theirs))(t)
		if err := c.Signal("INT"); !errors.Is(err, holder.ErrNoSignal) {
			t.Errorf("signal: %v", err)
		}
		if _, err := c.Feed(t.Context(), 0, []byte("x"), false); !errors.Is(err, pty.ErrNoFeed) {
			t.Errorf("feed: %v", err)
		}
		if err := c.Keep(5); err != nil {
			t.Errorf("keep: %v", err)
		}
		if c.Paces() || c.KeepsScreens() {
			t.Error("it is thought to pace, or to keep screens")
		}
		c.Close()
		tasks.Wait()
		if said.Len() > 0 {
			t.Errorf("beside its first words it said %q", said.String())
		}
	})
}

func TestSignalThroughAHolder(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	h := spawn(t, o, holder.Spec{ID: "x", Command: sh("trap 'echo stopped' USR1; echo ready; while :; do sleep 0.01; done")})
	stream(t, h, 0)
	readUntil(t, h, "ready")
	for _, name := range []string{"NOTHING", "", strings.Repeat("X", 100)} {
		if err := h.Signal(name); err == nil || !strings.Contains(err.Error(), "no such signal") {
			t.Errorf("%.10q: %v", name, err)
		}
	}
	for _, name := range []string{"USR1", "SIGUSR1"} {
		must.Do(t, h.Signal(name))
		readUntil(t, h, "stopped")
	}
}

// A connection that has ended does not say that the holder has.
func TestGone(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	h := spawn(t, o, holder.Spec{ID: "x", Command: sh("echo $PPID; read x")})
	stream(t, h, 0)
	pid := strings.TrimSpace(readUntil(t, h, "\n"))
	if h.Gone() {
		t.Error("gone while connected")
	}
	again := dial(t, o, "x")
	h.Wait()
	if h.Gone() {
		t.Errorf("gone although replaced: %v", h.Err())
	}
	send(t, "KILL", pid)
	again.Wait()
	if !again.Gone() {
		t.Errorf("not gone although killed: %v", again.Err())
	}
	if ids, err := holder.List(o.Dir); len(ids) != 0 || err != nil {
		t.Errorf("left: %v, %v", ids, err)
	}
}

// A holder that was stopped holds up nobody for ever.
func TestSilentHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, theirs := net.Pipe()
		var tasks sync.WaitGroup
		tasks.Go(func() {
			if _, err := meet(conn, helloOf(1, 1, "")); err != nil {
				t.Error(err)
			}
			tasks.Go(func() { _, _ = io.Copy(io.Discard, conn) })
			_, _ = conn.Write(frame(0x41, strings.Repeat("\x00", 48)))
			_, _ = conn.Write(frame(0x44, ""))
		})
		c := must.Get(holder.Connect(t.Context(), theirs))(t)
		for name, ask := range map[string]func() error{
			"meta":       func() error { return c.SetMeta(nil) },
			"checkpoint": func() error { return c.Checkpoint(0, nil) },
			"resize":     func() error { return c.Resize(pty.Size{Cols: 1, Rows: 1}) },
			"signal":     func() error { return c.Signal("INT") },
			"kill": func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				return c.Kill(ctx, time.Second)
			},
		} {
			began := time.Now()
			if err := ask(); err == nil || !strings.Contains(err.Error(), "does not answer") || time.Since(began) > 10*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
		}
		c.Close()
		tasks.Wait()
	})
}
