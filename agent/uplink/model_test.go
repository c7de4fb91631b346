package uplink_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// The model test lets people, children, the network and the host do anything in any
// order. Once everything is quiet, it compares the host's state with a model of a few
// lines: a list of terminals, each with its output.

// step is one event. n chooses the object and the amount.
type step struct {
	do int // index in doings
	n  int
}

// modelled holds the expected state of one terminal.
type modelled struct {
	h     term.Handle
	child *testkit.Child
	leave func() // of the attached person, or nil

	name     string
	private  bool
	lent     bool
	text     string
	title    string
	size     term.Size
	exit     int // -1 while it runs
	commands []int
	open     bool // the last of them runs
}

// modelWorld is the real system next to the model.
type modelWorld struct {
	*world
	all   []*modelled
	grace host.Options
	log   []string // the events, for the message
}

// doings are all that can happen. Each is told a number to choose by, and the terminal
// that it chooses, if there is one.
var doings = []struct {
	name string
	do   func(w *modelWorld, m *modelled, n int)
	none bool // it needs no terminal
}{
	{"spawn", (*modelWorld).spawnOne, true},
	{"print", func(_ *modelWorld, m *modelled, n int) {
		m.print(strings.Repeat(fmt.Sprintf("%s says %d… é\r\n", m.name, n), 1+n%20))
	}, false},
	{"set the title", func(_ *modelWorld, m *modelled, n int) {
		if m.exit < 0 {
			m.title = fmt.Sprintf("%s with title %d", m.name, n)
			m.print("\x1b]0;" + m.title + "\a")
		}
	}, false},
	{"start a command", func(_ *modelWorld, m *modelled, n int) {
		if m.exit < 0 && !m.open {
			m.commands, m.open = append(m.commands, -1), true
			m.mark(fmt.Sprintf("\x1b]633;E;make %d;n0\a\x1b]633;C;n0\a", len(m.commands)))
		}
	}, false},
	{"finish a command", func(_ *modelWorld, m *modelled, n int) {
		if m.exit < 0 && m.open {
			m.commands[len(m.commands)-1], m.open = n%256, false
			m.mark(fmt.Sprintf("\x1b]633;D;%d;n0\a", n%256))
		}
	}, false},
	{"resize", func(_ *modelWorld, m *modelled, n int) {
		size := term.Size{Cols: uint16(1 + n%1000), Rows: uint16(1 + n%99)}
		if m.h.Resize(size) == nil {
			m.size = size
		}
	}, false},
	{"exit", func(_ *modelWorld, m *modelled, n int) { m.end(n % 256); m.child.End(n % 256) }, false},
	{"kill", func(w *modelWorld, m *modelled, _ int) {
		m.end(137)
		check.OK(w.t, m.h.Kill(w.ctx))
	}, false},
	{"lend", func(_ *modelWorld, m *modelled, _ int) { m.lent = m.h.Lend("lab") == nil }, false},
	{"unlend", func(w *modelWorld, m *modelled, _ int) {
		m.lent = false
		check.OK(w.t, m.h.Unlend("lab"))
	}, false},
	{"attach or leave", (*modelWorld).attach, false},
	{"dispose", (*modelWorld).disposeOne, false},
	{"cut for a moment", func(w *modelWorld, _ *modelled, _ int) { w.cut(false) }, true},
	{"cut for long", func(w *modelWorld, _ *modelled, _ int) { w.cut(true) }, true},
	{"mend", func(w *modelWorld, _ *modelled, _ int) { w.mend() }, true},
	{"restart the host", func(w *modelWorld, _ *modelled, _ int) { w.restartHost(w.grace) }, true},
	{"restart the link", func(w *modelWorld, _ *modelled, _ int) { w.endLink(); w.newLink() }, true},
	{"wait", func(_ *modelWorld, _ *modelled, n int) { pass(time.Duration(n*n) * time.Microsecond) }, true},
}

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (m *modelled) print(text string) {
	if m.exit < 0 {
		m.text += text
		m.child.Print(text)
	}
}

func (m *modelled) mark(sequence string) { m.child.Print(sequence) }

func (m *modelled) end(code int) {
	if m.exit >= 0 {
		return
	}
	if m.exit = code; m.open {
		m.commands[len(m.commands)-1], m.open = code, false
	}
}

func (w *modelWorld) spawnOne(_ *modelled, n int) {
	m := &modelled{name: fmt.Sprint("t", len(w.all)), private: n%5 == 0, lent: n%5 > 1, exit: -1, size: term.Size{Cols: 80, Rows: 24}}
	m.title = m.name
	s := term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/src"), Name: m.name, Nonce: "n0", Size: m.size, Private: m.private}
	if m.lent {
		s.LendTo = []string{"lab"}
	}
	h := must.Get(w.pool.As(term.User).Spawn(s))(w.t)
	locked(&w.mu, func() { m.h, m.child = h, w.child })
	w.all = append(w.all, m)
}

func (w *modelWorld) attach(m *modelled, _ int) {
	if m.leave != nil {
		m.leave()
		m.leave = nil
		return
	}
	var err error
	if m.leave, err = m.h.Attach(); err != nil {
		w.t.Error(err)
	}
}

// disposeOne makes an observer at the host dispose of a terminal that is shown there.
// While the link is down or has not shown everything, the disposal takes effect later,
// which the model does not follow; so it happens only when all is quiet.
func (w *modelWorld) disposeOne(m *modelled, _ int) {
	if !m.lent {
		return
	}
	w.calm()
	for uri, s := range w.observe() {
		if s.Title == m.title {
			w.disposeOf(uri)
		}
	}
	synctest.Wait()
	m.lent = false
	if m.leave == nil {
		m.end(137)
	}
}

// calm waits until everything must have arrived.
func (w *modelWorld) calm() {
	w.mend()
	w.online()
	pass(time.Minute)
	w.online()
	synctest.Wait()
}

// check compares the host with the model.
func (w *modelWorld) check() {
	w.calm()
	shown := map[string]ahp.TerminalState{}
	for uri, s := range w.observe() {
		if _, twice := shown[s.Title]; twice {
			w.t.Errorf("the host shows %q twice", s.Title)
		}
		if s.Meta.Former == uri {
			w.t.Errorf("%s names itself as the former", uri)
		}
		shown[s.Title] = s
	}
	for _, m := range w.all {
		s, ok := shown[m.title]
		delete(shown, m.title)
		switch {
		case ok != m.lent:
			w.t.Errorf("%s is shown: %v, lent: %v", m.name, ok, m.lent)
		case ok:
			w.compare(m, s)
		}
		if i := m.h.Info(); (i.Exit == nil) != (m.exit < 0) || i.Exit != nil && i.Exit.Code != m.exit || i.LentToHost("lab") != m.lent {
			w.t.Errorf("%s has exit %v and is lent to %v, want %d and %v", m.name, i.Exit, i.LentTo, m.exit, m.lent)
		}
	}
	for title := range shown {
		w.t.Errorf("the host shows %q, which nobody lends", title)
	}
	if w.t.Failed() {
		w.t.Logf("after: %s\nlink: %+v", strings.Join(w.log, "; "), w.link.Status())
	}
}

func (w *modelWorld) compare(m *modelled, s ahp.TerminalState) {
	if got := s.Text(); got != m.text {
		w.t.Errorf("%s: the host has %q, it printed %q", m.name, got, m.text)
	}
	exited := s.Lifecycle.Exited()
	if exited != (m.exit >= 0) || exited && (s.Lifecycle.ExitCode == nil || *s.Lifecycle.ExitCode != int64(m.exit)) {
		w.t.Errorf("%s: the host has %+v, it exited with %d", m.name, s.Lifecycle, m.exit)
	}
	if s.Cols != int64(m.size.Cols) || s.Rows != int64(m.size.Rows) {
		w.t.Errorf("%s: the host has %d×%d, want %v", m.name, s.Cols, s.Rows, m.size)
	}
	var got, want []string
	for _, p := range s.Content {
		if p.Type == ahp.PartCommand {
			code := int64(-1)
			if p.IsComplete && p.ExitCode != nil {
				code = *p.ExitCode
			}
			got = append(got, fmt.Sprint(p.CommandLine, " → ", code))
		}
	}
	for i, code := range m.commands {
		want = append(want, fmt.Sprintf("make %d → %d", i+1, code))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || s.SupportsCommandDetection != (len(want) > 0) {
		w.t.Errorf("%s: the host has commands %q (detection %v), want %q", m.name, got, s.SupportsCommandDetection, want)
	}
}

// play carries out the steps and reports whether host and model agree.
func play(t *testing.T, steps []step) (ok bool) {
	return t.Run("", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := &modelWorld{grace: host.Options{Grace: 30 * time.Second}}
			w.world = newWorld(t, w.grace, func(o *uplink.Options) { o.Heartbeat = 5 * time.Second })
			for _, s := range steps {
				d := doings[s.do]
				var m *modelled
				if len(w.all) > 0 {
					m = w.all[s.n%len(w.all)]
				}
				if m == nil && !d.none {
					continue
				}
				w.log = append(w.log, fmt.Sprint(d.name, " ", s.n))
				d.do(w, m, s.n)
			}
			w.check()
		})
	})
}

func TestAnythingInAnyOrder(t *testing.T) {
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": fmt.Sprint(testkit.Load(60, 20)), "rapid.shrinktime": "20s"} {
		must.Do(t, flag.Set(name, value))
	}
	one := rapid.Custom(func(r *rapid.T) step {
		return step{rapid.IntRange(0, len(doings)-1).Draw(r, "do"), rapid.IntRange(0, 10_000).Draw(r, "n")}
	})
	for round := range testkit.Rounds(t, 1, 100) {
		must.Do(t, flag.Set("rapid.seed", fmt.Sprint(1+round)))
		rapid.Check(t, func(r *rapid.T) {
			if !play(t, rapid.SliceOfN(one, 1, 60).Draw(r, "steps")) {
				r.Fatal("host and model differ")
			}
		})
	}
}
