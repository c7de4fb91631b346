package term_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/vocab"
)

// lookedAt is a fake child whose system tells how its terminal takes keys.
type lookedAt struct {
	*testkit.Child
	look  atomic.Pointer[pty.Look]
	looks atomic.Int32
}

func (l *lookedAt) Look() (pty.Look, error) {
	l.looks.Add(1)
	return *l.look.Load(), nil
}

func (l *lookedAt) reads(lines, echo bool, r proc.Reading) {
	l.look.Store(&pty.Look{Lines: lines, Echo: echo, Front: 1 << 22, Reading: r})
}

func startLooked(t *testing.T, o term.Options, s term.Spec) (term.Handle, *lookedAt) {
	f := &lookedAt{Child: testkit.NewChild()}
	f.reads(true, true, proc.Reading{Waits: proc.WaitsNot})
	o.Start = func(term.ID, pty.Command) (term.PTY, error) { return f, nil }
	pool := term.NewPool(o)
	s.Command, s.Cwd = []string{"fake"}, testkit.Abs("/")
	h := must.Get(pool.As(term.User).Spawn(s))(t)
	t.Cleanup(func() { _ = pool.Close(context.Background()) })
	return h, f
}

var keys = proc.Reading{Waits: proc.WaitsForKeys}

// The kernel's information and the cursor's place make a state; words do not.
func TestInputStates(t *testing.T) {
	for name, c := range map[string]struct {
		printed     string
		lines, echo bool
		reading     proc.Reading
		want        vocab.InputState
	}{
		"a line":                         {"name: ", true, true, keys, vocab.InputAwaiting},
		"a key behind a prompt":          {"more? ", false, false, keys, vocab.InputAwaiting},
		"a key without one":              {"press q\r\n", false, false, keys, vocab.InputQuiet},
		"nothing else is done":           {"\r\n", true, true, proc.Reading{Waits: proc.WaitsForKeys, Alone: true}, vocab.InputAwaiting},
		"a secret":                       {"password: ", true, false, keys, vocab.InputSecret},
		"a secret of another user's":     {"password: ", true, false, proc.Reading{}, vocab.InputSecret},
		"no echo, and nobody reads":      {"password: ", true, false, proc.Reading{Waits: proc.WaitsNot}, vocab.InputQuiet},
		"another user's program":         {"sure? ", true, true, proc.Reading{}, vocab.InputUnknown},
		"one that has no prompt":         {"serves\r\n", true, true, proc.Reading{}, vocab.InputQuiet},
		"a question that nobody reads":   {"Continue? [y/N] ", true, true, proc.Reading{Waits: proc.WaitsNot}, vocab.InputQuiet},
		"keys for another terminal":      {"$ ", false, false, proc.Reading{Waits: proc.WaitsForKeys, Relays: true}, vocab.InputUnknown},
		"the alternate screen":           {"\x1b[?1049h\x1b[2Jtext", false, false, keys, vocab.InputFullScreen},
		"with another mode":              {"\x1b[?1049;25htext", false, false, keys, vocab.InputFullScreen},
		"no more":                        {"\x1b[?1049htext\x1b[?1049lname: ", false, false, keys, vocab.InputAwaiting},
		"a hidden cursor and a limit":    {"\x1b[?25lPID 1", false, false, proc.Reading{Waits: proc.WaitsForKeys, Timed: true}, vocab.InputQuiet},
		"a limit":                        {"name: ", false, false, proc.Reading{Waits: proc.WaitsForKeys, Timed: true}, vocab.InputAwaiting},
		"a title is no prompt":           {"line\r\n\x1b]0;sure? \a", false, false, keys, vocab.InputQuiet},
		"a bar that was wiped":           {"\r 45%\r\x1b[K", false, false, keys, vocab.InputQuiet},
		"text behind the cursor is none": {"\rhint\r", false, false, keys, vocab.InputQuiet},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, f := startLooked(t, term.Options{}, term.Spec{})
				f.reads(c.lines, c.echo, c.reading)
				f.Print(c.printed)
				time.Sleep(2100 * time.Millisecond)
				if in, _ := h.LastInput(); in.Input != c.want {
					t.Errorf("%q is %+v, want %s", c.printed, in, c.want)
				}
			})
		})
	}
}

// A terminal is examined five times when its output stops, and then only on request.
func TestLooksAtInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := startLooked(t, term.Options{}, term.Spec{})
		time.Sleep(time.Hour)
		if n := f.looks.Load(); n != 5 {
			t.Errorf("%d looks at a terminal that is silent from the start", n)
		}
		for range 100 { // 10 s of output
			f.Print("x")
			time.Sleep(100 * time.Millisecond)
		}
		in, changed := h.LastInput()
		if n := f.looks.Load(); n != 5 || in.Input != vocab.InputRunning {
			t.Errorf("%d looks while it prints; %+v", n-5, in)
		}
		f.reads(true, true, keys)
		select {
		case <-changed:
		case <-time.After(time.Second):
			t.Error("the question was not found within a second")
		}
		time.Sleep(time.Hour)
		if n := f.looks.Load(); n != 10 {
			t.Errorf("%d looks after the output", n-5)
		}
		was, changed := h.Input()
		if was.Input != vocab.InputAwaiting || f.looks.Load() != 11 {
			t.Errorf("asked: %+v, %d looks", was, f.looks.Load()-10)
		}
		must.Do(t, h.Write(t.Context(), []byte("y")))
		f.Print("y")
		time.Sleep(3 * time.Second)
		if in, _ := h.Input(); in != was {
			t.Errorf("half an answer made another question of it: %+v, was %+v", in, was)
		}
		must.Do(t, h.Write(t.Context(), []byte("\r")))
		select {
		case <-changed:
		default:
			t.Error("an answer changes nothing")
		}
		time.Sleep(3 * time.Second)
		if in, _ := h.Input(); in.Input != vocab.InputAwaiting || !in.InputSince.After(was.InputSince) {
			t.Errorf("the next question: %+v", in)
		}
		_, changed = h.Input()
		f.End(0)
		synctest.Wait()
		<-changed
		if in, _ := h.Input(); in != (vocab.Keyboard{}) {
			t.Errorf("after the exit: %+v", in)
		}
	})
}

// Output between two late looks is followed by looks as any other.
func TestLooksAfterOutputBetweenLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := startLooked(t, term.Options{}, term.Spec{})
		f.reads(true, true, keys)
		for _, rest := range []time.Duration{3 * time.Second, 10 * time.Second} {
			f.Print("working\r\n")
			time.Sleep(rest)
			f.Print("name: ")
			time.Sleep(600 * time.Millisecond)
			if in, _ := h.LastInput(); in.Input != vocab.InputAwaiting {
				t.Errorf("asked after %v: %+v", rest, in)
			}
		}
	})
}

// A holder that answers no look in time, as on a busy machine, is asked until it does.
func TestLooksAgainWhereTheHolderIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := startLooked(t, term.Options{}, term.Spec{})
		f.look.Store(&pty.Look{Lines: true, Echo: true, Front: 1 << 22, Late: true})
		f.Print("name: ")
		time.Sleep(time.Minute)
		if in, _ := h.LastInput(); in.Input != vocab.InputUnknown {
			t.Errorf("without an answer: %+v", in)
		}
		f.reads(true, true, keys)
		time.Sleep(3 * time.Second)
		if in, _ := h.LastInput(); in.Input != vocab.InputAwaiting {
			t.Errorf("with the answer: %+v", in)
		}
		n := f.looks.Load()
		time.Sleep(time.Hour)
		if more := f.looks.Load() - n; more > 0 {
			t.Errorf("%d looks after the answer", more)
		}
	})
}

// A system that does not tell says so.
func TestInputOfASystemWithoutReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, term.Options{}, term.Spec{})
		f.Print("name: ")
		time.Sleep(3 * time.Second)
		if in, _ := h.Input(); in.Input != vocab.InputUnknown {
			t.Errorf("%+v", in)
		}
		f.Print("\x1b[?1049h")
		time.Sleep(3 * time.Second)
		if in, _ := h.Input(); in.Input != vocab.InputFullScreen {
			t.Errorf("%+v", in)
		}
	})
}

// A switch of the screen is found wherever it lies in the log.
func TestAlternateScreenInAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f := startLooked(t, term.Options{LogBytes: 64 << 10}, term.Spec{})
		for i := range 40 {
			f.Print(strings.Repeat("x", 65_530+i) + "\x1b[?1049h") // over the end of the ring, too
			time.Sleep(3 * time.Second)
			if in, _ := h.Input(); in.Input != vocab.InputFullScreen {
				t.Fatalf("%d: %+v", i, in)
			}
			f.Print("\x1b[?1049l\r\n")
			time.Sleep(3 * time.Second)
			if in, _ := h.Input(); in.Input != vocab.InputQuiet {
				t.Fatalf("%d: %+v", i, in)
			}
		}
	})
}

// An agent that sees texts masked sees the prompt so, and none of a secret.
func TestPromptIsMasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := must.Get(redact.Compile(redact.Options{}))(t)
		h, f := startLooked(t, term.Options{Outward: rules, Secrets: func([]string) []string { return []string{"hunter2hunter2"} }}, term.Spec{Env: []string{"A=b"}})
		f.reads(true, true, keys)
		f.Print("hunter2hunter2, sure? ")
		time.Sleep(time.Second)
		if in, _ := h.Masked().Input(); in.Input != vocab.InputAwaiting || strings.Contains(in.Prompt, "hunter2") || !strings.Contains(in.Prompt, "sure?") {
			t.Errorf("%+v", in)
		}
		f.reads(true, false, keys)
		f.Print("\r\nkey: ")
		time.Sleep(time.Second)
		if in, _ := h.Input(); in.Input != vocab.InputSecret || in.Prompt != "" {
			t.Errorf("%+v", in)
		}
	})
}
