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
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// Output is taken where it arrives while the reader waits, and by the reader else: never
// by both, all of it, in order.
func TestDirect(t *testing.T) {
	for name, refuse := range map[string]func(n int) bool{
		"all is taken":      func(int) bool { return false },
		"nothing is":        func(int) bool { return true },
		"every third piece": func(n int) bool { return n%3 != 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, holder.Spec{LogBytes: 1 << 20})
				c := b.dial()
				var got []byte // without a lock: the race detector sees whether two have it
				asked, direct := 0, 0
				c.Direct(func(p []byte) bool {
					if asked++; refuse(asked) {
						return false
					}
					direct += len(p)
					got = append(got, p...)
					return true
				})
				stream(t, c, 0)
				const size = 300_000
				b.tasks.Go(func() {
					for off := int64(0); off < size; off += 3000 {
						<-b.print(off, 3000)
						time.Sleep(time.Millisecond)
					}
					b.child.End(0)
				})
				buf := make([]byte, 1000)
				for {
					if c.WaitReadable() != nil {
						break
					}
					n := must.Get(c.Read(buf))(t)
					got = append(got, buf[:n]...)
				}
				if wrong := checkCount(got, 0); wrong >= 0 || len(got) != size {
					t.Errorf("%d bytes, wrong at %d", len(got), wrong)
				}
				if name == "all is taken" && direct < size/2 || name != "nothing is" && direct == 0 {
					t.Errorf("%d of %d bytes were taken where they arrived", direct, size)
				}
				if exit := c.Wait(); exit.Code != 0 {
					t.Error(exit)
				}
				check.OK(t, c.Forget(context.Background()))
				b.tasks.Wait()
			})
		})
	}
}

// A waiting reader returns after Close, but only after the running take has returned, and
// none is called later.
func TestDirectEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, holder.Spec{})
		c := b.dial()
		taking, goOn := make(chan struct{}), make(chan struct{})
		calls := 0
		c.Direct(func([]byte) bool {
			calls++
			close(taking)
			<-goOn
			return true
		})
		stream(t, c, 0)
		waited := make(chan struct{})
		b.tasks.Go(func() {
			defer close(waited)
			if err := c.WaitReadable(); !errors.Is(err, holder.ErrDetached) {
				t.Errorf("the error is %v", err)
			}
			calls++
		})
		synctest.Wait() // it waits
		b.tasks.Go(func() { <-b.print(0, 10) })
		<-taking
		b.tasks.Go(func() { c.Close() })
		if isDone(waited) {
			t.Error("the reader is told of the end while output is being taken")
		}
		close(goOn)
		<-waited
		b.end()
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
	})
}

// Output is acknowledged also where a frame that is not output came behind it: nothing
// else would make the holder go on. Little of it is acknowledged a moment later, all of
// it at once.
func TestDirectIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, theirs := net.Pipe()
		var tasks sync.WaitGroup
		told := make(chan []byte, 100)
		tasks.Go(func() {
			if _, err := meet(conn, plainHello()); err != nil {
				t.Error(err)
			}
			tasks.Go(func() {
				for head := [5]byte{}; ; {
					if _, err := io.ReadFull(conn, head[:]); err != nil {
						return
					}
					p := make([]byte, binary.BigEndian.Uint32(head[1:]))
					if _, err := io.ReadFull(conn, p); err != nil {
						return
					}
					if head[0] == 0x02 {
						told <- p
					}
				}
			})
			_, _ = conn.Write(frame(0x41, strings.Repeat("\x00", 48)))
			_, _ = conn.Write(frame(0x44, ""))
		})
		c := must.Get(holder.Connect(t.Context(), theirs))(t)
		c.Direct(func([]byte) bool { return true })
		stream(t, c, 0)
		tasks.Go(func() { _ = c.WaitReadable() })
		synctest.Wait()
		const reply = "\x00\x00\x00\x01\x00" // to a request that nobody waits for
		const little, much = 20, 600
		end := 0
		for _, size := range []int{little, much} {
			for _, more := range [][]byte{nil, frame(0x47, reply)} {
				output := frame(0x45, string(binary.BigEndian.AppendUint64(nil, uint64(end)))+strings.Repeat("x", size))
				must.Get(conn.Write(append(output, more...)))(t)
				end += size
				synctest.Wait()
				if size == little && len(told) > 0 {
					t.Errorf("%d bytes are acknowledged at once", size)
				}
				if size == little {
					time.Sleep(20 * time.Millisecond)
					synctest.Wait()
				}
				select {
				case p := <-told:
					if off := binary.BigEndian.Uint64(p); off != uint64(end) {
						t.Errorf("acknowledged up to %d of %d", off, end)
					}
				default:
					t.Errorf("%d bytes, %d behind them: nothing was acknowledged", size, len(more))
				}
			}
		}
		c.Close()
		tasks.Wait()
	})
}
