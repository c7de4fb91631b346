package term_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/screen"
)

// drawn is output of a full-screen program, or of one that prints lines. The contents of
// the other screen are unknown if the size changes, see package screen.
func drawn(random *rand.Rand, n int, sizes bool) string {
	other := []string{"\x1b[?1049h\x1b[2J\x1b[HTHE HEADER", "\x1b[?1049l", "\x1b[?2004h", "\x1b]2;title\a"}
	if sizes {
		other = other[2:]
	}
	var b strings.Builder
	for b.Len() < n {
		switch random.IntN(12) {
		case 0:
			fmt.Fprintf(&b, "\x1b[%d;%dr", 1+random.IntN(5), 6+random.IntN(9))
		case 1:
			b.WriteString(other[random.IntN(len(other))])
		case 2, 3:
			fmt.Fprintf(&b, "\x1b[3%dmline %d of 世界\r\n\x1b[m", random.IntN(8), random.IntN(1e6))
		default:
			fmt.Fprintf(&b, "\x1b[%d;%dH\x1b[Kcounter %d", 1+random.IntN(14), 1+random.IntN(50), random.IntN(1e6))
		}
	}
	return b.String()
}

// seenFrom is the view of somebody who joins now: the oldest screen, and the output after
// it.
func seenFrom(t *testing.T, h term.Handle) (at output.Screen, replay string) {
	t.Helper()
	r, err := h.Reader(output.ReaderOptions{View: output.ViewScreen})
	must.Do(t, err)
	defer r.Close()
	if at, err = r.Oldest(); err != nil {
		t.Fatal(err)
	}
	s := screen.NewState(int(at.Size.Cols), int(at.Size.Rows))
	s.Write(at.Replay)
	buf := make([]byte, 4<<10)
	for {
		ev, ok, err := r.TryNext(buf)
		switch {
		case err == io.EOF || err == nil && !ok:
			return at, string(s.Replay())
		case err != nil:
			t.Fatal(err)
		case ev.Mark == nil:
			s.Write(ev.Data)
		case ev.Mark.Kind == output.MarkResized:
			s.Resize(int(ev.Mark.Size.Cols), int(ev.Mark.Size.Rows))
		}
	}
}

// A new viewer sees the same as one who was there from the start, with any daemon: the
// former one was killed, and the child continued.
func TestScreensOutliveDaemons(t *testing.T) {
	for round := range testkit.Rounds(t, 2, 300) {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(round), 31))
				sizes := round%2 == 1 // else the other screen
				const limit = 1 << 20 // of the holder's log, too
				v := newVault(limit)
				o := term.Options{LogBytes: limit}
				size := pty.Size{Cols: 60, Rows: 15}
				v.size = size
				pool, h, l := keeping(t, v, o, term.Spec{Size: term.Size(size)})
				defer func() {
					l.leave(pool)
				}()
				whole := screen.NewState(60, 15)
				print := func(n int) {
					for n > 0 {
						p := drawn(random, min(n, 16<<10), sizes)
						n -= len(p)
						v.print(p)
						whole.Write([]byte(p))
						synctest.Wait()
					}
				}
				for range 5 {
					print(random.IntN(testkit.Load(limit, limit/2)))
					if sizes && random.IntN(2) == 0 {
						size = pty.Size{Cols: uint16(20 + random.IntN(60)), Rows: uint16(15 + random.IntN(10))}
						must.Do(t, h.Resize(term.Size(size)))
						whole.Resize(int(size.Cols), int(size.Rows))
						synctest.Wait()
					}
					if random.IntN(2) == 0 {
						l.leave(pool)
						_, _, _, keep := v.state()
						print(int(min(random.Int64N(limit), keep+limit-v.end()-1<<10))) // nobody reads it, and the holder has the child wait
						pool, h, l = adopting(t, v, o)
						synctest.Wait()
					}
					at, got := seenFrom(t, h)
					if diff := cmp.Diff(strings.Split(string(whole.Replay()), "\x1b"), strings.Split(got, "\x1b")); diff != "" || !at.Exact {
						t.Fatalf("from %d of %d, exact %t, (-want +got)\n%s", at.Raw, v.end(), at.Exact, diff)
					}
				}
			})
		})
	}
}

// After missing output the screen is unknown until the program clears it, and a holder is
// never full of output that only a screen needs: it would make the child wait for ever.
func TestScreenAfterAGapIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		random := rand.New(rand.NewPCG(1, 2))
		v := newVault(limit)
		o := term.Options{LogBytes: limit}
		pool, _, l := keeping(t, v, o, term.Spec{})
		v.print("\x1b[HTHE HEADER\r\n")
		synctest.Wait()
		l.leave(pool)
		redraw := func(n int) {
			for end := v.end() + int64(n); v.end() < end; synctest.Wait() {
				v.print(strings.Repeat(fmt.Sprintf("\x1b[4;1H\x1b[Kcounter %d", random.IntN(1e6)), 100))
				if _, _, _, keep := v.state(); keep < v.end()-limit {
					t.Fatalf("%d bytes are needed of %d", v.end()-keep, limit)
				}
			}
		}
		v.keep = 1<<63 - 1 // as when the holder gives up
		redraw(limit + 1000)
		pool, h, l := adopting(t, v, o)
		defer func() {
			l.leave(pool)
		}()
		for range 3 {
			redraw(limit)
			if at, _ := seenFrom(t, h); at.Exact {
				t.Fatalf("at %d the screen is said to be known", at.Raw)
			}
		}
		v.print("\x1b[2J")
		redraw(2 * limit)
		at, got := seenFrom(t, h)
		if !at.Exact || !strings.Contains(got, "counter") {
			t.Errorf("after a clear the screen is exact %t: %q", at.Exact, got)
		}
		if _, _, _, keep := v.state(); keep == 1<<63-1 {
			t.Error("no screen is kept any more")
		}
	})
}
