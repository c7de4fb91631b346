package term_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/vocab"
)

// keeping starts a terminal in a vault.
func keeping(t *testing.T, v *vault, o term.Options, s term.Spec) (*term.Pool, term.Handle, *wire) {
	t.Helper()
	return keepingOf(t, v, term.User, o, s)
}

// keepingOf is keeping with a terminal of owner.
func keepingOf(t *testing.T, v *vault, owner term.Actor, o term.Options, s term.Spec) (*term.Pool, term.Handle, *wire) {
	t.Helper()
	var l *wire
	o.Start = func(term.ID, pty.Command) (term.PTY, error) { l, _ = v.connect(); return l, nil }
	pool := term.NewPool(o)
	s.Command, s.Cwd, s.ID = []string{"child", "arg"}, testkit.Abs("/"), "pty-held"
	h := must.Get(pool.As(owner).Spawn(s))(t)
	return pool, h, l
}

// adopting is the next daemon.
func adopting(t *testing.T, v *vault, o term.Options) (*term.Pool, term.Handle, *wire) {
	t.Helper()
	pool := term.NewPool(o)
	l, past := v.connect()
	must.Do(t, pool.Adopt(t.Context(), l, past))
	h := must.Get(pool.As(term.User).Find("pty-held"))(t)
	return pool, h, l
}

// pieces are the parts of random output. All marks that count have the nonce n.
var pieces = []string{
	"plain text\r\n", "é", "\xe2\x9c", "\x94", "\xff\xfe", "🙂 ", "\x1b[31mred\x1b[0m", "\x1b", "]", "\x1b[", "6n", "\x1b[6n", "\x07", "\x1b]52;c;?\a",
	"\x1b]2;title %d\a", "\x1b]7;file:///dir/%d\a", "\x1b]633;A;n\a", "\x1b]633;B;n\a", "\x1b]633;E;make %d;n\a\x1b]633;C;n\a", "\x1b]633;D;%d;n\a",
	"\x1b]633;E;false %d;other\a", "\x1b]133;C\a", strings.Repeat("a long line ", 30) + "\r\n",
}

func randomOutput(random *rand.Rand) string {
	p := pieces[random.IntN(len(pieces))]
	if strings.Contains(p, "%d") {
		p = fmt.Sprintf(p, random.IntN(200))
	}
	return p
}

// told is an event as a host is told it: data joined, marks in their place.
type told struct {
	Off  int64
	Data string
	Mark string
}

// tell reads the events for a host that has everything up to a text offset.
func tell(t *testing.T, h term.Handle, from int64) (all []told, lagged int64) {
	t.Helper()
	r := must.Get(h.Reader(output.ReaderOptions{View: output.ViewText}))(t)
	defer r.Close()
	if !r.SeekText(from) {
		t.Fatalf("there is no text offset %d", from)
	}
	buf := make([]byte, 512)
	for {
		ev, ok, err := r.TryNext(buf)
		var lag *output.LaggedError
		switch n := len(all); {
		case errors.As(err, &lag):
			lagged += lag.Lost
			all = nil
		case err == io.EOF || err == nil && !ok:
			return all, lagged
		case err != nil:
			t.Fatal(err)
		case ev.Mark != nil && (ev.Mark.Kind == output.MarkTitle || ev.Mark.Kind == output.MarkCwd || ev.Mark.Kind == output.MarkDetection):
			// Within its own sequence the place depends on how that was read. Hosts are
			// told these anew at each announcement.
		case ev.Mark != nil:
			all = append(all, told{Off: r.Offset(), Mark: markText(ev.Mark)})
		case n > 0 && all[n-1].Mark == "":
			all[n-1].Data += string(ev.Data)
		default:
			all = append(all, told{Off: ev.Off, Data: string(ev.Data)})
		}
	}
}

// markText is the part of a mark that must not depend on the scanning daemon.
func markText(m *output.Mark) string {
	code := "-"
	if m.Command.Exit != nil {
		code = fmt.Sprint(*m.Command.Exit)
	}
	return fmt.Sprint(m.Kind, m.Size, m.Command.N, m.Command.Text(), m.Command.Start, code, m.Exit.Code)
}

// split takes the text apart from the marks.
func split(all []told) (text string, marks []told) {
	for _, e := range all {
		if text += e.Data; e.Mark != "" {
			marks = append(marks, e)
		}
	}
	return text, marks
}

// nearby lets a mark stand on either side of the two bytes that are left in its place
// within another sequence: that depends on how it was read.
var nearby = cmp.Comparer(func(a, b int64) bool { return max(a-b, b-a) <= 2 })

// A reader that continues at a text offset with any daemon gets the same as if there had
// been only one: text, commands, titles, in their places. The log may have been trimmed
// meanwhile.
func TestOffsetsOutliveDaemons(t *testing.T) {
	for round := range testkit.Rounds(t, testkit.Load(4, 2), 400) {
		seed := uint64(round)
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			limit := 8 << 20
			if seed%2 == 1 {
				limit = 1 << 20 // the smallest log of a holder
			}
			o := term.Options{LogBytes: limit}
			v := newVault(limit)
			var h term.Handle
			pool, _, l := keeping(t, v, o, term.Spec{Nonce: "n"})
			only, child, _ := start(t, term.Options{LogBytes: 64 << 20}, term.Spec{Command: []string{"child", "arg"}, Nonce: "n", Cwd: testkit.Abs("/")})
			oldest := int64(0) // text offset that is certainly there
			for generation := range 5 {
				for range random.IntN(testkit.Load(150, 60)) {
					p := randomOutput(random)
					if seed%2 == 1 {
						p += strings.Repeat("fill ", random.IntN(3000))
					}
					v.print(p)
					child.Print(p)
					synctest.Wait() // no holder drops output so soon that was not taken
				}
				l.cut() // kill -9
				synctest.Wait()
				p := "between " + randomOutput(random)
				v.print(p)
				child.Print(p)
				must.Do(t, pool.Close(context.Background()))
				pool, h, l = adopting(t, v, o)
				synctest.Wait()
				all, _ := tell(t, only, 0)
				last := all[len(all)-1]
				total := last.Off + int64(len(last.Data))
				oldest = max(oldest, total-int64(limit)/2)
				for range 5 {
					from := oldest + random.Int64N(max(total-oldest, 1))
					got, lagged := tell(t, h, from)
					want, lag := tell(t, only, from)
					wantText, wantMarks := split(want)
					gotText, gotMarks := split(got)
					if diff := cmp.Diff(wantMarks, gotMarks, nearby); diff != "" || lagged+lag > 0 || wantText != gotText {
						t.Fatalf("seed %d, generation %d, from %d of %d, %d lost, same text: %t (-alone +adopted):\n%s",
							seed, generation, from, total, lagged+lag, wantText == gotText, diff)
					}
				}
				a, b := only.Info(), h.Info()
				if a.Title != b.Title || a.Cwd != b.Cwd || a.CommandDetection != b.CommandDetection || a.Bytes != b.Bytes || (a.Running == nil) != (b.Running == nil) {
					t.Fatalf("seed %d, generation %d: alone %+v, adopted %+v", seed, generation, a, b)
				}
			}
			check.OK(t, pool.Close(context.Background()))
		})
	}
}

// Where more was printed without a daemon than the holder keeps, that is told, and no
// offset names two texts.
func TestOverflowWithoutADaemon(t *testing.T) {
	for _, invalid := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const limit = 1 << 20
			o := term.Options{LogBytes: limit}
			v := newVault(limit)
			pool, h, l := keeping(t, v, o, term.Spec{})
			text := strings.Repeat("x", 200_000)
			if invalid {
				text = strings.Repeat("\xff", 200_000) // three times as long as text
			}
			v.print(text)
			synctest.Wait()
			shown, _ := tell(t, h, 0)
			had := int64(len(shown[0].Data))
			l.leave(pool)
			for range 3 * limit / 10 {
				v.print("0123456789")
			}
			pool, h, l = adopting(t, v, o)
			i := h.Info()
			if i.Lost != 200_000+3*limit/10*10-limit-200_000 || i.Bytes != 200_000+3*limit/10*10 {
				t.Errorf("lost %d of %d bytes", i.Lost, i.Bytes)
			}
			all, lagged := tell(t, h, had)
			if lagged < i.Lost || lagged > i.Lost+3*400_000 || all[0].Off != had+lagged || len(all[0].Data) < limit-100 {
				t.Errorf("a host that had %d was told of a gap of %d and then of %d bytes at %d", had, lagged, len(all[0].Data), all[0].Off)
			}
			l.leave(pool)
		})
	}
}

// A gap while a daemon is connected is told, too, and counted exactly.
func TestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, l := keeping(t, v, term.Options{}, term.Spec{Nonce: "n"})
		v.print("before \x1b]633;E;make;n\a\x1b]633;C;n\aout \x1b]2;never")
		synctest.Wait()
		v.mu.Lock()
		lost := int64(1000)
		v.base, v.log = v.end()+lost, []byte("after\x1b]633;D;0;n\a")
		v.moved.Broadcast()
		v.mu.Unlock()
		synctest.Wait()
		if i := h.Info(); i.Lost != lost || i.Bytes != v.end() || i.Retained != 5+int64(len("\x1b]633;D;0;n\a")) || i.Running != nil {
			t.Errorf("%+v", i)
		}
		all, lagged := tell(t, h, int64(len("before out ")))
		if lagged != lost+int64(len("\x1b]2;never")) || len(all) != 2 || all[0].Data != "after" {
			t.Errorf("gap of %d, then %v", lagged, all)
		}
		l.leave(pool)
	})
}

// If there is no room to keep exited terminals, the holder keeps the exit until everyone
// concerned was told.
func TestHolderIsDismissedOnceAllKnowTheExit(t *testing.T) {
	for _, test := range []struct {
		name string
		spec term.Spec
		tell func(p *term.Pool, h term.Handle, leave func())
	}{
		{"nobody", term.Spec{}, nil},
		{"a person", term.Spec{}, func(_ *term.Pool, _ term.Handle, leave func()) { leave() }},
		{"two hosts", term.Spec{LendTo: []string{"a", "b"}}, func(p *term.Pool, h term.Handle, _ func()) {
			for _, name := range []string{"a", "b"} {
				one := must.Get(p.As(term.Host(name)).Find(string(h.ID())))(t)
				one.Heard()
			}
		}},
		{"a host that is withdrawn", term.Spec{LendTo: []string{"a"}}, func(_ *term.Pool, h term.Handle, _ func()) { h.Unlend("a") }},
		{"nobody any more", term.Spec{LendTo: []string{"a"}}, func(*term.Pool, term.Handle, func()) { time.Sleep(2 * time.Hour) }},
		{"the pool ends", term.Spec{LendTo: []string{"a"}}, func(p *term.Pool, _ term.Handle, _ func()) { p.Close(context.Background()) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVault(1 << 20)
				pool, h, _ := keeping(t, v, term.Options{TotalLogBytes: 1}, test.spec)
				leave := func() {}
				if test.name == "a person" {
					leave, _ = h.Attach()
				}
				v.print("last words")
				v.ends(3)
				<-h.Done()
				synctest.Wait()
				if e := h.Info().Exit; e.Code != 3 || e.Reason != vocab.ExitItself {
					t.Errorf("exit %+v", e)
				}
				if _, _, forgot, _ := v.state(); forgot != (test.tell == nil) {
					t.Errorf("dismissed: %t", forgot)
				}
				if test.tell != nil {
					test.tell(pool, h, leave)
				}
				synctest.Wait()
				if _, _, forgot, _ := v.state(); !forgot {
					t.Error("not dismissed")
				}
				pool.Close(context.Background())
			})
		})
	}
}

// The end of a connection is no exit; the end of the holder is one, though nobody knows
// its code.
func TestLostConnection(t *testing.T) {
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v := newVault(1 << 20)
			again := make(chan term.ID, 1)
			pool, h, l := keeping(t, v, term.Options{Left: func(id term.ID) { again <- id }}, term.Spec{})
			r := reader(t, h, output.ReaderOptions{})
			v.print("some")
			synctest.Wait()
			if killed {
				v.kill()
			} else {
				l.cut()
			}
			synctest.Wait()
			list := pool.As(term.User).List()
			if killed {
				if e := h.Info().Exit; len(list) != 1 || e == nil || e.Code != -1 || e.Reason != vocab.ExitLost || len(again) != 0 {
					t.Errorf("killed: %d listed, exit %+v", len(list), e)
				}
			} else {
				if len(list) != 0 || h.Info().Exit != nil || len(again) != 1 {
					t.Errorf("cut: %d listed, exit %+v, told %d times", len(list), h.Info().Exit, len(again))
				}
				for err := error(nil); !errors.Is(err, io.ErrClosedPipe); {
					_, err = r.Next(t.Context(), make([]byte, 100))
					if err != nil && !errors.Is(err, io.ErrClosedPipe) {
						t.Fatal(err)
					}
				}
				l, past := v.connect()
				must.Do(t, pool.Adopt(t.Context(), l, past))
				if list := pool.As(term.User).List(); len(list) != 1 || list[0].Info().Bytes != 4 {
					t.Errorf("adopted again: %v", list)
				}
			}
			pool.Close(context.Background())
		})
	}
}

// Detach leaves terminals with a holder, with a last checkpoint, and returns how many
// continue.
func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, _ := keeping(t, v, term.Options{}, term.Spec{})
		v.print("text é")
		synctest.Wait()
		kept, err := pool.Detach(t.Context())
		if kept != 1 || err != nil || h.Info().Exit != nil {
			t.Errorf("kept %d, %v, exit %v", kept, err, h.Info().Exit)
		}
		if _, notes, forgot, _ := v.state(); notes != 1 || forgot || v.notes[0].Off != v.end() {
			t.Errorf("%d notes, forgotten: %t", notes, forgot)
		}
		if _, err := pool.As(term.User).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")}); !errors.Is(err, term.ErrClosed) {
			t.Errorf("spawn after it: %v", err)
		}
		_, child, pool := start(t, term.Options{}, term.Spec{})
		if kept, err := pool.Detach(t.Context()); kept != 0 || err != nil || !child.Killed() {
			t.Errorf("in this process: kept %d, %v, killed: %t", kept, err, child.Killed())
		}
	})
}

// Nobody knows of a terminal whose start was not finished.
func TestUnfinishedStartIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool := term.NewPool(term.Options{})
		l, past := v.connect()
		must.Do(t, pool.Adopt(t.Context(), l, past))
		if _, _, forgot, _ := v.state(); !forgot || v.exit == nil || len(pool.As(term.User).List()) != 0 {
			t.Errorf("exit %v, forgotten: %t", v.exit, forgot)
		}
		pool.Close(context.Background())
	})
}

// A record that this program cannot read makes a terminal that only the person sees.
func TestStrangeRecord(t *testing.T) {
	for _, meta := range []string{"?", `{"v":2,"lent":[{"host":"h"}]}`, `{"v":1,"owner":{"role":"wizard"},"private":true,"lent":[{"host":"h"}]}`} {
		synctest.Test(t, func(t *testing.T) {
			v := newVault(1 << 20)
			v.meta = []byte(meta)
			pool, h, _ := adopting(t, v, term.Options{})
			if i := h.Info(); !i.Private || i.Owner != term.User || len(i.LentTo) != 0 || i.Name != "pty-held" || len(i.Command) == 0 || !i.Visible {
				t.Errorf("%s: %+v", meta, i)
			}
			check.OK(t, pool.Close(context.Background()))
		})
	}
}

// The record matches the terminal, and includes changes at once.
func TestRecordFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, l := keeping(t, v, term.Options{}, term.Spec{Name: "build", LendTo: []string{"a"}, OnSlow: term.Hold, Nonce: "n", Port: 3000})
		host, err := pool.As(term.Host("a")).Find("build")
		must.Do(t, err)
		must.Do(t, errors.Join(host.SaveLinkState(t.Context(), "uri"), h.Lend("b"), h.Resize(term.Size{Cols: 90, Rows: 30})))
		v.print("\x1b]633;E;make;n\a\x1b]633;C;n\aout")
		synctest.Wait()
		time.Sleep(3 * time.Second)
		v.print("\x1b]633;D;2;n\a\x1b]633;E;next;n\a\x1b]633;C;n\a")
		time.Sleep(time.Second)
		commands, _ := h.Commands()
		before := h.Info()
		l.leave(pool)
		time.Sleep(time.Hour)
		pool, h, l = adopting(t, v, term.Options{})
		after := h.Info()
		after.Started, before.Started = after.Started.UTC(), before.Started.UTC()
		if diff := cmp.Diff(before, after, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Started" }, cmp.Comparer(time.Time.Equal))); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		again, _ := h.Commands()
		if diff := cmp.Diff(commands, again, cmp.Comparer(func(a, b time.Time) bool { return a.Sub(b).Abs() < time.Millisecond })); diff != "" {
			t.Errorf("commands (-before +after):\n%s", diff)
		}
		host, err = pool.As(term.Host("a")).Find("build")
		if err != nil || host.LinkState() != "uri" {
			t.Errorf("remembered %q, %v", host.LinkState(), err)
		}
		h.Unlend("a")
		h.Lend("a")
		if text := host.LinkState(); text != "" {
			t.Errorf("lent anew, %q is remembered", text)
		}
		must.Do(t, h.Unlend("a"))
		if err := host.SaveLinkState(t.Context(), "late"); !errors.Is(err, term.ErrNotFound) {
			t.Errorf("kept for a host it is not lent to: %v", err)
		}
		l.leave(pool)
	})
}

// A terminal that was lent to a host whose pairing has ended meanwhile is not lent to it.
func TestAdoptedForAHostThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, _, l := keeping(t, v, term.Options{}, term.Spec{LendTo: []string{"a", "b"}})
		l.leave(pool)
		pool, h, _ := adopting(t, v, term.Options{Lendable: func(name string) bool { return name == "b" }})
		if lent := h.Info().LentTo; len(lent) != 1 || lent[0] != "b" {
			t.Errorf("lent to %v", lent)
		}
		check.OK(t, pool.Close(context.Background()))
	})
}

// The holder keeps output that a holding reader does not have yet, and an awaited reader
// holds the child as long as a reader may.
func TestNeededIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		v := newVault(64 << 20)
		v.blind = true // screens need output, too
		o := term.Options{LogBytes: limit}
		pool, _, l := keeping(t, v, o, term.Spec{LendTo: []string{"a"}, OnSlow: term.Hold})
		host := must.Get(pool.As(term.Host("a")).Find("pty-held"))(t)
		r := must.Get(host.Reader(output.ReaderOptions{View: output.ViewText, Hold: true}))(t)
		print := func(n int) {
			v.print(strings.Repeat("0123456789", n/10))
			synctest.Wait()
		}
		print(limit / 2)
		buf := make([]byte, 32<<10)
		for {
			if _, ok, err := r.TryNext(buf); err != nil {
				t.Fatal(err)
			} else if !ok {
				break
			}
		}
		synctest.Wait()
		_, _, _, keep := v.state()
		if keep < limit/8 || keep > limit/2-64<<10 {
			t.Errorf("read to %d, kept from %d", limit/2, keep)
		}
		print(2 * limit)
		h, _ := pool.As(term.User).Find("pty-held")
		if got := h.Info().Bytes; got > 3*limit/2 {
			t.Errorf("the reader stands at %d, taken were %d", limit/2, got)
		}
		l.leave(pool)
		time.Sleep(time.Minute)
		pool, h, l = adopting(t, v, o)
		began := h.Info().Bytes
		print(limit)
		if got := h.Info().Bytes; got != began || began < 2*limit {
			t.Errorf("the host is away: %d taken, then %d", began, got)
		}
		if _, _, _, now := v.state(); now > keep {
			t.Errorf("kept from %d, before from %d", now, keep)
		}
		time.Sleep(11 * time.Second) // the stall time
		synctest.Wait()
		if got := h.Info().Bytes; got != v.end() {
			t.Errorf("after the stall time %d of %d", got, v.end())
		}
		if _, _, _, now := v.state(); now != 1<<63-1 {
			t.Errorf("nobody is awaited, kept from %d", now)
		}
		l.leave(pool)
	})
}

// Output of a killed terminal is not needed, whichever reader lacks it: a holder full of
// it would hold the child.
func TestNothingOfAKilledOneIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		v := newVault(64 << 20)
		pool, h, _ := keeping(t, v, term.Options{LogBytes: limit}, term.Spec{LendTo: []string{"a"}, OnSlow: term.Hold})
		host := must.Get(pool.As(term.Host("a")).Find("pty-held"))(t)
		r := must.Get(host.Reader(output.ReaderOptions{View: output.ViewText, Hold: true}))(t)
		defer r.Close()
		v.print(strings.Repeat("0123456789", limit/5))
		synctest.Wait()
		if _, _, _, keep := v.state(); keep > limit {
			t.Errorf("the reader has nothing, kept from %d", keep)
		}
		check.OK(t, h.Kill(t.Context()))
		synctest.Wait()
		if _, _, _, keep := v.state(); keep != 1<<63-1 {
			t.Errorf("after the kill kept from %d", keep)
		}
		check.OK(t, pool.Close(context.Background()))
	})
}

// Adopt gives up with its context and leaves the terminal to be adopted again.
func TestAdoptGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, _, l := keeping(t, v, term.Options{}, term.Spec{})
		v.print("text")
		synctest.Wait()
		l.leave(pool)
		pool = term.NewPool(term.Options{})
		l, past := v.connect()
		past.Log.End += 100 // which never come
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := pool.Adopt(ctx, l, past); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("adopt: %v", err)
		}
		synctest.Wait()
		l, past = v.connect()
		if err := pool.Adopt(t.Context(), l, past); err != nil {
			t.Errorf("again: %v", err)
		}
		other, _ := newVault(1 << 20).connect()
		if err := pool.Adopt(t.Context(), other, past); err == nil {
			t.Error("adopted twice under one id")
		}
		check.OK(t, pool.Close(context.Background()))
	})
}

// A terminal that has ended while it was taken up goes as others do.
func TestAnEndWhileATerminalIsTakenUpIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, _, l := keeping(t, v, term.Options{}, term.Spec{LendTo: []string{"lab"}})
		synctest.Wait()
		l.cut()
		synctest.Wait()
		_ = pool.Close(t.Context())
		v.print("bye")
		v.ends(0)
		pool, _, _ = adopting(t, v, term.Options{MayLend: func(term.Info, string) error {
			time.Sleep(time.Second) // a slow disk: the effects of its end are over by then
			return nil
		}})
		time.Sleep(2 * time.Hour)
		if left := pool.As(term.User).List(); len(left) > 0 {
			t.Errorf("after two hours there is %+v", left[0].Info().Exit)
		}
		_ = pool.Close(t.Context())
	})
}

// Whose a terminal was before it became the person's is known to the next daemon, too.
func TestStarterOfAPromotedTerminalIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, l := keepingOf(t, v, term.Agent("bob"), term.Options{}, term.Spec{})
		must.Do(t, h.Promote())
		synctest.Wait()
		l.leave(pool)
		pool, h, l = adopting(t, v, term.Options{})
		if i := h.Info(); i.Owner != term.User || !i.Promoted || i.Starter != term.Agent("bob") {
			t.Errorf("of %v, promoted %v, started by %v; want the person's, started by agent bob", i.Owner, i.Promoted, i.Starter)
		}
		l.leave(pool)
	})
}
