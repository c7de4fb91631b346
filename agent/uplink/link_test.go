package uplink_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

func TestATerminalIsSeenAtTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		_, child := w.spawn(term.Spec{Name: "web", Nonce: "n0", Size: term.Size{Cols: 100, Rows: 30}})
		child.Print("\x1b]633;A;n0\a$ \x1b]633;E;ls;n0\a\x1b]633;C;n0\afile\r\n\x1b]633;D;0;n0\a")
		prints(child, "\x1b]0;new title\a")
		s := w.only()
		if s.Title != "new title" || s.Cols != 100 || s.Rows != 30 || !strings.HasPrefix(s.Cwd, "file:///") || !strings.HasSuffix(s.Cwd, "/src") || s.ExecutionTarget != ahp.TargetClient {
			t.Errorf("state = %+v", s)
		}
		if got := text(s); got != "$ file\r\n\x1b]0;new title\a" {
			t.Errorf("text = %q", got)
		}
		if len(s.Content) != 3 || s.Content[1].CommandLine != "ls" || !s.Content[1].IsComplete || *s.Content[1].ExitCode != 0 {
			t.Errorf("content = %+v, want ls complete with 0 in the middle", s.Content)
		}
		child.End(5)
		synctest.Wait()
		if s := w.only(); !s.Lifecycle.Exited() || s.Lifecycle.ExitCode == nil || *s.Lifecycle.ExitCode != 5 {
			t.Errorf("lifecycle = %+v, want exited with 5", s.Lifecycle)
		}
	})
}

func TestPrivateAndUnlentTerminalsDoNotExistAtTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		_, child := w.spawn(term.Spec{Private: true})
		child.Print("secret")
		h, lent := w.spawn(term.Spec{})
		prints(lent, "hello")
		if got := text(w.only()); got != "hello" {
			t.Errorf("text = %q", got)
		}
		must.Do(t, h.Unlend("lab"))
		prints(lent, "after")
		if n := len(w.observe()); n != 0 {
			t.Errorf("%d terminals at the host after unlend, want 0", n)
		}
		must.Do(t, h.Lend("lab"))
		synctest.Wait()
		if got := text(w.only()); got != "helloafter" {
			t.Errorf("lent again: text = %q, want all of it", got)
		}
	})
}

func TestResumeAfterACutIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		_, child := w.spawn(term.Spec{Nonce: "n0"})
		var want strings.Builder
		for i := range 40 {
			line := fmt.Sprintf("line %d é✓\r\n", i)
			want.WriteString(line)
			fmt.Fprintf(&want, "out %d", i)
			child.Print(line[:len(line)/2])
			child.Print(line[len(line)/2:] + fmt.Sprintf("\x1b]633;E;cmd %d;n0\a\x1b]633;C;n0\aout %d\x1b]633;D;%d;n0\a", i, i, i))
			if i%4 == 0 {
				w.cut(i%8 == 0)
				child.Print("")
				w.mend()
			}
			if i%10 == 0 {
				time.Sleep(time.Second)
			}
		}
		w.online()
		synctest.Wait()
		s := w.only()
		if got := text(s); got != want.String() {
			t.Errorf("text differs:\n got %q\nwant %q\nstatus %+v", got, want.String(), w.link.Status())
		}
		seen := map[string]int{}
		for _, p := range s.Content {
			if p.Type == ahp.PartCommand {
				seen[p.CommandID]++
				if !p.IsComplete || p.ExitCode == nil || fmt.Sprintf("cmd %d", *p.ExitCode) != p.CommandLine {
					t.Errorf("part %+v is not the whole command", p)
				}
			}
		}
		if len(seen) != 40 {
			t.Errorf("%d commands at the host, want 40", len(seen))
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("command %s is there %d times", id, n)
			}
		}
	})
}

func TestCommandsAtTheCutAreNotRepeatedAndNotLost(t *testing.T) {
	steps := []string{"\x1b]633;E;make;n0\a", "\x1b]633;C;n0\a", "built\r\n", "\x1b]633;D;2;n0\a", "$ "}
	for at := range steps {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, host.Options{}, nil)
			_, child := w.spawn(term.Spec{Nonce: "n0"})
			for i, s := range steps {
				if i == at {
					w.cut(false)
				}
				prints(child, s)
			}
			w.online()
			synctest.Wait()
			s := w.only()
			if len(s.Content) != 2 || s.Content[0].CommandLine != "make" || s.Content[0].Output != "built\r\n" || !s.Content[0].IsComplete || s.Content[1].Value != "$ " {
				t.Errorf("cut before step %d: content = %+v", at, s.Content)
			}
		})
	}
}

func TestAfterTheGraceTimeAllIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{Grace: 10 * time.Second}, nil)
		_, child := w.spawn(term.Spec{})
		prints(child, "before ")
		w.cut(true)
		child.Print("during ")
		time.Sleep(time.Minute)
		if n := len(w.observeWhileDown()); n != 0 {
			t.Fatalf("%d terminals at the host after the grace time, want 0", n)
		}
		w.mend()
		w.online()
		prints(child, "after")
		if got := text(w.only()); got != "before during after" {
			t.Errorf("text = %q, want everything once", got)
		}
	})
}

func TestExitWhileTheLinkIsDownIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		_, child := w.spawn(term.Spec{})
		synctest.Wait()
		w.cut(true)
		child.Print("last words")
		child.End(3)
		time.Sleep(5 * time.Second)
		w.mend()
		w.online()
		synctest.Wait()
		s := w.only()
		if text(s) != "last words" || !s.Lifecycle.Exited() || s.Lifecycle.ExitCode == nil || *s.Lifecycle.ExitCode != 3 {
			t.Errorf("text %q, lifecycle %+v; want the last words and 3", text(s), s.Lifecycle)
		}
	})
}

func TestAHostThatForgotGetsEverythingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		_, child := w.spawn(term.Spec{})
		for i := range 5 {
			prints(child, fmt.Sprintf("life %d ", i))
			w.restartHost(host.Options{})
			w.online()
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if got := text(w.only()); got != "life 0 life 1 life 2 life 3 life 4 " {
			t.Errorf("text = %q", got)
		}
	})
}

func TestALossIsVisibleAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		_, child := w.spawn(term.Spec{})
		prints(child, "begin\r\n")
		w.cut(true)
		for i := range 200 { // 200 KiB into a log of 64
			child.Print(fmt.Sprintf("%01022d\r\n", i))
		}
		w.mend()
		w.online()
		synctest.Wait()
		got := text(w.only())
		st := w.link.Status().Terminals[0]
		if st.Lost < 100<<10 || st.Unacked != 0 {
			t.Errorf("status = %+v, want more than 100 KiB lost and nothing on its way", st)
		}
		if !strings.HasPrefix(got, "begin\r\n") || !strings.Contains(got, fmt.Sprint(st.Lost)) || !strings.HasSuffix(got, "199\r\n") {
			t.Errorf("text of %d bytes begins %q: no line names the %d lost bytes", len(got), got[:min(len(got), 200)], st.Lost)
		}
	})
}

func TestDisposalEndsTheChildOrTheLending(t *testing.T) {
	for _, attached := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, host.Options{}, nil)
			h, child := w.spawn(term.Spec{})
			if attached {
				leave := must.Get(h.Attach())(t)
				defer leave()
			}
			w.dispose()
			synctest.Wait()
			if n := len(w.observe()); n != 0 {
				t.Errorf("attached=%v: %d terminals at the host after disposal", attached, n)
			}
			if i := h.Info(); child.Killed() == attached || len(i.LentTo) != 0 {
				t.Errorf("attached=%v: killed=%v, lent to %v", attached, child.Killed(), i.LentTo)
			}
		})
	}
}

func TestStatusReportsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.online()
		if s := w.link.Status(); s.Version != "1.0.0" || !s.Resume || s.Err != nil {
			t.Errorf("status = %+v", s)
		}
		w.cut(true)
		time.Sleep(time.Millisecond)
		s := w.link.Status()
		if s.State != uplink.StateWaiting && s.State != uplink.StateConnecting || s.State == uplink.StateWaiting && (s.Err == nil || s.NextRetry.IsZero()) {
			t.Errorf("status while down = %+v", s)
		}
	})
}

func TestBackInTimeAfterAnyOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, host.Options{}, nil)
		w.online()
		w.cut(true)
		time.Sleep(time.Hour)
		w.mend()
		began := time.Now()
		w.online()
		if took := time.Since(began); took > 31*time.Second {
			t.Errorf("back after %v, want at most the cap of the back-off", took)
		}
		w.cut(true)
		w.mend()
		time.Sleep(10 * time.Minute)
		w.cut(true)
		time.Sleep(20 * time.Minute)
		w.mend()
		w.link.Nudge()
		synctest.Wait()
		if s := w.link.Status().State; s != uplink.StateOnline {
			t.Errorf("after a nudge the link is %s, want online at once", s)
		}
	})
}
