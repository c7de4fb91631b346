package uplink_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/ahp"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/vocab"
)

// asking is a child whose program the system tells of.
type asking struct {
	*testkit.Child
	look *atomic.Pointer[pty.Look]
}

func (a asking) Look() (pty.Look, error) { return *a.look.Load(), nil }

// asks makes the children of a world such.
func asks(w *world) *atomic.Pointer[pty.Look] {
	var look atomic.Pointer[pty.Look]
	look.Store(&pty.Look{Lines: true, Echo: true, Front: 1 << 22, Reading: proc.Reading{Waits: proc.WaitsNot}})
	w.wrap = func(c *testkit.Child) term.PTY { return asking{c, &look} }
	return &look
}

// inputs are the states that a host was told from a time on.
func (c *capture) inputs(since time.Time) (all []string) {
	for _, frame := range c.since(since) {
		if _, rest, ok := strings.Cut(frame, `"`+ahp.MethodState+`"`); ok {
			_, rest, _ = strings.Cut(rest, `"input":"`)
			state, _, _ := strings.Cut(rest, `"`)
			all = append(all, state)
		}
	}
	return all
}

// The host gets the program's state behind the output before it, never a character of
// input or output with it, and at most four times a second.
func TestInputStateIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &capture{}
		w := captured(t, c, term.Options{})
		look := asks(w)
		w.online()
		began := time.Now()
		h, child := w.spawn(term.Spec{})
		child.Print("name: ")
		look.Store(&pty.Look{Lines: true, Echo: true, Front: 1 << 22, Reading: proc.Reading{Waits: proc.WaitsForKeys}})
		time.Sleep(3 * time.Second)
		if got := c.inputs(began); !slices.Equal(got, []string{ahp.InputRunning, ahp.InputAwaits}) {
			t.Errorf("a question was told as %q", got)
		}
		sent := c.since(began)
		at := slices.IndexFunc(sent, func(m string) bool { return strings.Contains(m, ahp.InputAwaits) })
		if at < 0 || !strings.Contains(sent[at-1], "name: ") && !strings.Contains(strings.Join(sent[:at], ""), "name: ") || strings.Contains(sent[at], "name") {
			t.Errorf("the question is not behind its text, or has text: %q", sent)
		}
		must.Do(t, h.Write(t.Context(), []byte("hunter2\r")))
		look.Store(&pty.Look{Lines: true, Front: 1 << 22, Reading: proc.Reading{Waits: proc.WaitsForKeys}})
		child.Print("me\r\npassword: ")
		time.Sleep(3 * time.Second)
		if got := c.inputs(began)[2:]; !slices.Equal(got, []string{ahp.InputRunning, ahp.InputSecret}) {
			t.Errorf("a secret was told as %q", got)
		}
		if all := strings.Join(c.since(began), ""); strings.Contains(all, "hunter2") {
			t.Errorf("what was typed went up: %s", all)
		}

		// Nothing happens, and nothing is told.
		quiet := time.Now()
		time.Sleep(time.Hour)
		if got := c.inputs(quiet); len(got) > 0 {
			t.Errorf("in an hour without output %q were told", got)
		}
		// Answers in quick succession: the newest counts.
		quiet = time.Now()
		for range 100 {
			_ = h.Write(t.Context(), []byte("x\r"))
			time.Sleep(10 * time.Millisecond)
		}
		if got := c.inputs(quiet); len(got) > 5 {
			t.Errorf("in a second %q were told", got)
		}
		// After the end of the loan nobody is told.
		must.Do(t, h.Unlend("lab"))
		synctest.Wait()
		over := time.Now().Add(1)
		look.Store(&pty.Look{Lines: true, Echo: true, Front: 1 << 22, Reading: proc.Reading{Waits: proc.WaitsForKeys}})
		child.Print("\r\nsure? ")
		time.Sleep(5 * time.Second)
		if got := c.inputs(over); len(got) > 0 {
			t.Errorf("after unlend %q were told", got)
		}
	})
}

// A report that waits for the network when the loan ends is removed.
func TestInputOfAnEndedLoanIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &capture{}
		w := captured(t, c, term.Options{})
		look := asks(w)
		w.online()
		h, _ := w.spawn(term.Spec{})
		asks(w)
		_, other := w.spawn(term.Spec{})
		time.Sleep(3 * time.Second)
		c.stall()
		prints(other, "it blocks the network")
		look.Store(&pty.Look{Lines: true, Front: 1 << 22, Reading: proc.Reading{Waits: proc.WaitsForKeys}})
		h.Input() // who looks finds another state, which the host is to be told
		synctest.Wait()
		must.Do(t, h.Unlend("lab"))
		synctest.Wait()
		over := time.Now()
		c.goOn()
		time.Sleep(100 * time.Millisecond)
		if got := c.inputs(over); len(got) > 0 {
			t.Errorf("after unlend %q were told", got)
		}
	})
}

// A host that does not take states is told none; one that does is told again after an
// outage, of the same question.
func TestInputAtOtherHosts(t *testing.T) {
	for _, takes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			marker := ahp.NewClientTerminals(30000)
			marker.States = takes
			f := &fakeHost{target: ahp.TargetClient, marker: marker.Meta(), again: true}
			w := fakeWorld(t, f, nil)
			asks(w).Store(&pty.Look{Lines: true, Echo: true, Front: 1 << 22, Reading: proc.Reading{Waits: proc.WaitsForKeys, Alone: true}})
			w.spawn(term.Spec{})
			ack := func() {
				f.peer.Notify(t.Context(), ahp.MethodAck, ahp.AckParams{Channel: f.uri(t), Applied: 0})
				time.Sleep(5 * time.Second)
			}
			ack()
			w.cut(false)
			time.Sleep(5 * time.Second)
			ack()
			f.mu.Lock()
			defer f.mu.Unlock()
			want := 3 // running, the question, and the question again
			if !takes {
				want = 0
			}
			if n := len(f.states); n != want || n > 0 && (f.states[n-1] != f.states[n-2] || f.states[n-1].Input != ahp.InputAwaits) {
				t.Errorf("a host that takes states, %t, was told %+v", takes, f.states)
			}
		})
	}
}

// How far a declared terminal is goes up with it, again after an outage; secrets in the
// reason are masked.
func TestReadyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := must.Get(redact.Compile(redact.Options{Tokens: true}))(t)
		token := "ghp_" + strings.Repeat("a1B2", 9)
		c := &capture{}
		w := captured(t, c, term.Options{Outward: rules})
		w.online()
		began := time.Now()
		h, _ := w.spawn(term.Spec{})
		told := func() (all []string) {
			for _, frame := range c.since(began) {
				var m struct {
					Method string
					Params ahp.StateParams
				}
				if err := json.Unmarshal([]byte(frame), &m); err == nil && m.Method == ahp.MethodState && m.Params.Ready != "" {
					all = append(all, m.Params.Ready+": "+m.Params.ReadyWhy)
				}
			}
			return slices.Compact(all)
		}
		h.SetReady(vocab.ReadyStarting, "it is ready when a line matches "+token)
		time.Sleep(time.Second)
		h.SetReady(vocab.ReadyYes, "it listens on port 5432")
		time.Sleep(time.Second)
		got := told()
		if len(got) != 2 || strings.Contains(got[0], token) || !strings.HasPrefix(got[0], "starting: it is ready when") || got[1] != "ready: it listens on port 5432" {
			t.Errorf("told %q", got)
		}
		time.Sleep(time.Hour)
		if again := told(); !slices.Equal(again, got) {
			t.Errorf("an hour later told %q", again)
		}
	})
}
