package term_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// smallLog is the smallest log a pool gives.
var smallLog = term.Options{LogBytes: 64 << 10, Stall: 10 * time.Second}

// line is 1 KiB with a newline at its end.
var line = strings.Repeat("x", 1023) + "\n"

func TestLaggingReaderGetsAGapAndContinuesAtALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{})
		r := reader(t, h, output.ReaderOptions{})
		prints(f, "first\n")
		if got := events(t, r); len(got) != 1 || got[0].Data != "first\n" {
			t.Fatalf("events = %v, want the first line", got)
		}
		for range 100 { // 100 KiB into a log of 64
			f.Print(line)
		}
		f.End(0)
		synctest.Wait()
		_, _, err := r.TryNext(make([]byte, 4096))
		var lagged *output.LaggedError
		if !errors.As(err, &lagged) {
			t.Fatalf("error = %v, want a LaggedError", err)
		}
		if lagged.At != 6+lagged.Lost || (lagged.At-6)%1024 != 0 {
			t.Errorf("lost %d, goes on at %d: not the start of a line", lagged.Lost, lagged.At)
		}
		got := events(t, r)
		want := strings.Repeat(line, int(100-lagged.Lost/1024))
		if len(got) != 2 || got[0].Data != want || got[0].Off != lagged.At || got[1].Mark != output.MarkExited {
			t.Errorf("after the loss: %d events, first of %d bytes at %d; want all lines from %d and the exit",
				len(got), len(got[0].Data), got[0].Off, lagged.At)
		}
		if lagged.Lost < 36<<10 || lagged.Lost > 38<<10 {
			t.Errorf("lost %d bytes of 100 KiB with a log of 64 KiB", lagged.Lost)
		}
	})
}

// Where a text view goes on after a loss is told as a raw offset, too: from there another
// reader reads the same.
func TestALossIsReportedInBothOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{})
		r := reader(t, h, output.ReaderOptions{View: output.ViewText})
		for range 100 {
			f.Print("\x1b]133;A\a" + line) // the mark is no text
		}
		f.End(0)
		synctest.Wait()
		_, _, err := r.TryNext(make([]byte, 4096))
		var lagged *output.LaggedError
		if !errors.As(err, &lagged) {
			t.Fatalf("error = %v, want a LaggedError", err)
		}
		if lagged.Raw <= lagged.At {
			t.Errorf("it goes on at the text offset %d and the raw one %d", lagged.At, lagged.Raw)
		}
		if diff := cmp.Diff(events(t, r), events(t, reader(t, h, output.ReaderOptions{View: output.ViewText, From: lagged.Raw}))); diff != "" {
			t.Errorf("from the raw offset (-first +second):\n%s", diff)
		}
	})
}

func TestHoldingReaderSlowsTheChildAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Hold})
		r := reader(t, h, output.ReaderOptions{Hold: true})
		printed := make(chan struct{})
		go func() {
			defer close(printed)
			for range 200 {
				f.Print(line)
			}
			f.End(0)
		}()
		total := 0
		buf := make([]byte, 4096)
		for {
			ev, err := r.Next(t.Context(), buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("after %d bytes: %v", total, err)
			}
			if total += len(ev.Data); total%(16<<10) == 0 {
				time.Sleep(time.Second) // fake time: slow, but within the stall time
			}
		}
		<-printed
		if total != 200<<10 {
			t.Errorf("read %d bytes, want %d", total, 200<<10)
		}
	})
}

func TestStalledReaderDoesNotStopTheChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Hold})
		reader(t, h, output.ReaderOptions{Hold: true}) // never reads
		began := time.Now()
		for range 300 {
			f.Print(line)
		}
		f.End(0)
		<-h.Done()
		if took := time.Since(began); took != smallLog.Stall {
			t.Errorf("the child was held for %v, want one stall time of %v", took, smallLog.Stall)
		}
	})
}

func TestKillReleasesAHeldChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Hold})
		reader(t, h, output.ReaderOptions{Hold: true})
		go func() {
			for range 300 {
				f.Print(line)
			}
		}()
		synctest.Wait()
		began := time.Now()
		must.Do(t, h.Kill(t.Context()))
		if took := time.Since(began); took > time.Second {
			t.Errorf("kill took %v behind a reader that holds", took)
		}
	})
}

func TestExitIsTheLastEventAndComesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		f.Print("last words")
		f.End(9)
		<-h.Done()
		r := reader(t, h, output.ReaderOptions{})
		want := []item{{Data: "last words"}, {Mark: output.MarkExited}}
		check.Equal(t, "events differ", want, events(t, r))
		if _, err := r.Next(t.Context(), make([]byte, 64)); err != io.EOF {
			t.Errorf("after the exit: %v, want io.EOF", err)
		}
		if e := h.Info().Exit; e == nil || e.Code != 9 {
			t.Errorf("exit = %+v, want 9", e)
		}
	})
}

// A background process that keeps the pty open must not keep the terminal: the leader is
// gone and nothing comes any more.
func TestExitDoesNotWaitForABackgroundProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		f.Print("started\r\n")
		began := time.Now()
		f.Die(0) // but the output goes on
		time.Sleep(200 * time.Millisecond)
		f.Print("late\r\n")
		<-h.Done()
		if took := time.Since(began); took < 400*time.Millisecond || took > time.Second {
			t.Errorf("drained for %v, want a quiet quarter of a second after the last byte", took)
		}
		if got := events(t, reader(t, h, output.ReaderOptions{})); got[0].Data != "started\r\nlate\r\n" {
			t.Errorf("events = %v, want both lines", got)
		}
	})
}

func TestDrainOfAnEndlessBackgroundProcessIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{})
		began := time.Now()
		f.Die(0)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			for {
				f.Print("tick")
				select {
				case <-f.Closed():
					return
				default:
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
		<-h.Done()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("drained for %v, want at most about 5 s", took)
		}
	})
}

func TestReaderEndsWithItsContextAndItsClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := start(t, term.Options{}, term.Spec{})
		r := reader(t, h, output.ReaderOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Next(ctx, make([]byte, 64)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next = %v, want the context's error", err)
		}
		go func() { time.Sleep(time.Second); r.Close() }()
		if _, err := r.Next(t.Context(), make([]byte, 64)); err != io.ErrClosedPipe {
			t.Errorf("Next = %v, want io.ErrClosedPipe", err)
		}
		if _, _, err := r.TryNext(make([]byte, 10)); err != io.ErrShortBuffer {
			t.Errorf("TryNext with 10 bytes = %v, want io.ErrShortBuffer", err)
		}
	})
}

func TestReadyWaitsForTheAmount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		r := reader(t, h, output.ReaderOptions{})
		ready := r.Ready(10)
		prints(f, "12345")
		select {
		case <-ready:
			t.Fatal("ready with 5 of 10 bytes")
		default:
		}
		prints(f, "67890")
		select {
		case <-ready:
		default:
			t.Fatal("not ready with 10 of 10 bytes")
		}
		ready = r.Ready(1000)
		must.Do(t, h.Resize(term.Size{Cols: 100, Rows: 30}))
		select {
		case <-ready:
		default:
			t.Fatal("a mark does not make a reader ready")
		}
		if got := events(t, r); len(got) != 2 || got[1].Mark != output.MarkResized {
			t.Errorf("events = %v, want the data and the new size", got)
		}
	})
}

func TestTailStartsAtALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		prints(f, "one\ntwo\nthree\n")
		for tail, want := range map[int64]string{3: "", 6: "three\n", 7: "three\n", 100: "one\ntwo\nthree\n", -1: ""} {
			got := ""
			for _, e := range events(t, reader(t, h, output.ReaderOptions{Tail: tail})) {
				got += e.Data
			}
			if got != want {
				t.Errorf("tail of %d = %q, want %q", tail, got, want)
			}
		}
	})
}

func TestMarksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{Nonce: nonce})
		r := reader(t, h, output.ReaderOptions{})
		for i := range 2000 {
			must.Do(t, h.Resize(term.Size{Cols: uint16(1 + i%1000), Rows: 24}))
		}
		f.Print(strings.Repeat("\x1b]633;A;n0\a", 5000))
		prints(f, strings.Repeat("\xff\xfe.", 5000))
		var lagged *output.LaggedError
		if _, _, err := r.TryNext(make([]byte, 64)); !errors.As(err, &lagged) {
			t.Errorf("after 2,000 sizes on a small log: %v, want a LaggedError", err)
		}
		if got := len(events(t, r)); got > 300 {
			t.Errorf("%d events retained, want at most the bound of marks", got)
		}
		if i := h.Info(); i.Size.Cols != 1000 {
			t.Errorf("size = %v, want the last", i.Size)
		}
	})
}
