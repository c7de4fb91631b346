package term_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// A lagging reader's loss is counted in its view, even if the text is longer or shorter
// than its bytes.
func TestLostIsCountedInTheView(t *testing.T) {
	for name, piece := range map[string]string{
		"longer":  strings.Repeat("\xff", 1022) + "\r\n",
		"shorter": "\x1b]52;c;" + strings.Repeat("A", 1000) + "\a\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			h, f, _ := start(t, smallLog, term.Spec{})
			all, late := reader(t, h, output.ReaderOptions{}), reader(t, h, output.ReaderOptions{})
			prints(f, "begin")
			events(t, late)
			seen := int64(0)
			for range 200 {
				prints(f, piece)
				for _, e := range events(t, all) {
					seen = e.Off + int64(len(e.Data))
				}
			}
			_, _, err := late.TryNext(make([]byte, 64))
			lagged, ok := errors.AsType[*output.LaggedError](err)
			if !ok {
				t.Fatalf("%s: %v, want a LaggedError", name, err)
			}
			if lagged.At != 5+lagged.Lost {
				t.Errorf("%s: lost %d of %d bytes of text, goes on at %d, stood at 5", name, lagged.Lost, seen, lagged.At)
			}
			late.SeekText(2)
			if _, _, err = late.TryNext(make([]byte, 64)); !errors.As(err, &lagged) || lagged.At != 2+lagged.Lost {
				t.Errorf("%s: after a seek to 2: %v, goes on at %d", name, err, lagged.At)
			}
		})
	}
}

// A run of bytes that are not UTF-8 is kept as one; a mark in it still divides it.
func TestAMarkInsideBinaryStaysInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		prints(f, "\xff\xff")
		must.Do(t, h.Resize(term.Size{Cols: 100, Rows: 30}))
		prints(f, "\xff\xff")
		want := []item{{Data: "\uFFFD\uFFFD"}, {Mark: output.MarkResized}, {Data: "\uFFFD\uFFFD", Off: 6}}
		check.Equal(t, "events differ", want, events(t, reader(t, h, output.ReaderOptions{})))
	})
}

// A command that is announced late stands where readers were then: one that comes back to
// that text must find it.
func TestALateCommandIsBehindEarlierOutput(t *testing.T) {
	for name, proof := range map[string]func(print func(string)){
		"by time":   func(func(string)) { time.Sleep(time.Second) },
		"by output": func(print func(string)) { print("out") },
	} {
		synctest.Test(t, func(t *testing.T) {
			h, f, _ := start(t, term.Options{}, term.Spec{})
			r := reader(t, h, output.ReaderOptions{})
			f.Print("\x1b]133;A\a$ \x1b]133;B\a\x1b]133;C\a\x1b]0;make\a") // the title is no output
			synctest.Wait()
			before := events(t, r)
			last := before[len(before)-1]
			proof(f.Print)
			synctest.Wait()
			r.SeekText(last.Off + int64(len(last.Data)))
			if got := events(t, r); len(got) == 0 || got[0].Mark != output.MarkCommandExecuted {
				t.Errorf("%s: after %v come %v, want the command first", name, before, got)
			}
		})
	}
}

// Marks alone that were dropped cost a reader no text.
func TestDroppedMarksCostNoText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{Nonce: nonce})
		r := reader(t, h, output.ReaderOptions{View: output.ViewText})
		prints(f, "prompt$ ")
		events(t, r)
		for i := range 300 {
			f.Print(fmt.Sprintf("\x1b]633;P;Cwd=/d%d;n0\a", i))
		}
		prints(f, "make\r\nbuilt\r\n")
		_, _, err := r.TryNext(make([]byte, 64))
		lagged, ok := errors.AsType[*output.LaggedError](err)
		if !ok || lagged.Lost != 0 {
			t.Errorf("error %v, want a LaggedError without a loss", err)
		}
		got := ""
		for _, e := range events(t, r) {
			got += e.Data
		}
		if got != "make\r\nbuilt\r\n" {
			t.Errorf("text after the marks were dropped = %q", got)
		}
	})
}

// A moment of doubt belongs to one command, not to the one before.
func TestEnterTwiceInAMomentIsNoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		f.Print("\x1b]133;A\a\x1b]133;B\a")
		for range 3 { // a shell that takes 12 ms for its prompt
			f.Print("\x1b]133;C\a")
			time.Sleep(12 * time.Millisecond)
			f.Print("\x1b]133;A\a\x1b]133;B\a")
		}
		time.Sleep(time.Second)
		if commands, _ := h.Commands(); len(commands) != 0 {
			t.Errorf("commands = %+v, want none", commands)
		}
	})
}

// A holding reader lets the child continue even if the passed output shows nothing in its
// view.
func TestPassingHiddenBytesMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Hold})
		r := reader(t, h, output.ReaderOptions{Hold: true})
		go func() {
			for range 80 {
				f.Print("\x1b]52;c;" + strings.Repeat("A", 1000) + "\a")
			}
			f.End(0)
		}()
		synctest.Wait() // the log is full
		began := time.Now()
		ev, err := r.Next(t.Context(), make([]byte, 64))
		if err != nil || ev.Mark == nil || ev.Mark.Kind != output.MarkExited {
			t.Fatalf("next = %+v, %v, want the exit", ev, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the child was held for %v behind a reader that had passed everything", took)
		}
	})
}
