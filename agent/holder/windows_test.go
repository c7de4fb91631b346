//go:build windows

package holder_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
)

// escapes are the sequences with which a console paints. Without them and the line ends,
// the output of count is a row of numbers.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)|[\r\n]")

func unpainted(b []byte) string { return string(escapes.ReplaceAll(b, nil)) }

// wantCounted fails the test unless text is the output of count, from the start, and
// returns how many numbers it holds.
func wantCounted(t *testing.T, text string) int {
	t.Helper()
	for n := 0; n < len(text)/8; n++ {
		if got, want := text[8*n:8*n+8], string(counter(nil, n)); got != want {
			t.Fatalf("after %d numbers %q, want %q", n, got, want)
		}
	}
	return len(text) / 8
}

func TestReconnectAnywhereOnWindows(t *testing.T) {
	o := options(t)
	const lines = 20_000
	h := spawn(t, o, holder.Spec{ID: "x", Command: countCommand(t, lines), Meta: []byte("m")})
	stream(t, h, 0)
	whole := all(t, h)
	if n := wantCounted(t, unpainted([]byte(whole))); n != lines {
		t.Fatalf("%d numbers, want %d", n, lines)
	}
	h.Close()
	for _, off := range []int64{0, 1, 9, 4095, 65536, int64(len(whole)) - 1, int64(len(whole))} {
		again := dial(t, o, "x")
		if again.Base() != 0 || again.End() != int64(len(whole)) || string(again.Meta()) != "m" || again.Pid() != h.Pid() {
			t.Errorf("found %d to %d, meta %q", again.Base(), again.End(), again.Meta())
		}
		stream(t, again, off)
		if out := all(t, again); out != whole[off:] {
			t.Errorf("from %d: %d bytes, want %d, or other ones", off, len(out), int64(len(whole))-off)
		}
		if exit := again.Wait(); exit.Code != 0 {
			t.Error(exit)
		}
		again.Close()
	}
	forget(t, dial(t, o, "x"))
}

// The promise: a daemon is killed in the middle of a flood, again and again, and all
// output that the daemons have written together equals the child's.
func TestDaemonKilledUnderFloodOnWindows(t *testing.T) {
	o := options(t)
	file := filepath.Join(t.TempDir(), "recorded")
	h := spawn(t, o, holder.Spec{ID: "x", Command: countCommand(t, 1e8), LogBytes: 1 << 20, AwayHold: testkit.Patience, Stall: testkit.Patience})
	h.Close()
	kills := 0
	for range testkit.Rounds(t, 20, 200) {
		killedDaemon(t, o, file, size(t, file)+1, time.Duration(rand.IntN(60))*time.Millisecond)
		kills++
	}
	last := dial(t, o, "x")
	must.Do(t, last.Kill(t.Context(), 0))
	last.Close()
	lastDaemon(t, o, file)
	recorded := must.Get(os.ReadFile(file))(t)
	n := wantCounted(t, unpainted(recorded))
	last = dial(t, o, "x")
	if _, end := last.ExitedAt(); end != int64(len(recorded)) || end == 0 {
		t.Errorf("recorded %d of %d bytes", len(recorded), end)
	}
	t.Logf("%d kills, %d bytes, %d numbers", kills, len(recorded), n)
}

// A holder that is asked to end takes its child along; one that is killed does so, too,
// since its job ends with it.
func TestEndsOfAHolderOnWindows(t *testing.T) {
	o := options(t)
	for _, how := range []string{"asked", "killed"} {
		h := spawn(t, o, holder.Spec{ID: how, Command: waiting(t)})
		stream(t, h, 0)
		readUntil(t, h, "ready")
		child, err := proc.Lookup(h.Pid())
		must.Do(t, err)
		process := must.Get(os.FindProcess(holderOf(t, child.Pid)))(t)
		if how == "asked" {
			err = proc.Terminate(process)
		} else {
			err = process.Kill()
		}
		must.Do(t, err)
		h.Wait()
		<-h.Done()
		if !errors.Is(h.Err(), holder.ErrLost) {
			t.Errorf("%s: %v, want ErrLost", how, h.Err())
		}
		testkit.Eventually(t, testkit.Patience, how+": the child has ended", func() bool {
			now, err := proc.Lookup(child.Pid)
			return err != nil || now.Zombie || now.ID != child.ID
		})
		if !h.Gone() {
			t.Errorf("%s: the holder is still there", how)
		}
		h.Close()
	}
	if ids, err := holder.List(o.Dir); len(ids) > 0 || err != nil {
		t.Errorf("left: %v, %v", ids, err)
	}
}

func init() {
	programs["leave"] = leave
	programs["hang"] = func([]string) int { testkit.Hang(); return 1 }
}

// leave starts a program without a console and environment, writes its number into a
// file, and ends.
func leave(args []string) int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	cmd := exec.Command(self, "hang")
	cmd.Env = []string{"SystemRoot=" + os.Getenv("SystemRoot"), testkit.ForHang()}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS}
	if err := cmd.Start(); err != nil {
		return 1
	}
	if err := os.WriteFile(args[0], []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		return 1
	}
	return 0
}

// A process that an agent's terminal has left counts as the agent's by its job: after its
// leader has ended, for the next daemon, and when nobody knows the terminal any more. Its
// holder stays for it, and ends with it.
func TestHolderStaysForAnAgentsLeftoverProcessesOnWindows(t *testing.T) {
	o := options(t)
	file := filepath.Join(t.TempDir(), "pid")
	agent := fmt.Sprintf("claude-%d", os.Getpid())
	c := pty.Command{Path: self(t), Args: []string{"leave", "leave", file}, Env: append(os.Environ(), proc.Tag("x"), proc.AgentTag(agent), testkit.ForHang())}
	h := spawn(t, o, holder.Spec{ID: "x", Command: c})
	stream(t, h, 0)
	all(t, h)
	if exit := h.Wait(); exit.Code != 0 {
		t.Fatal(exit)
	}
	text := must.Get(os.ReadFile(file))(t)
	pid := must.Get(strconv.Atoi(string(text)))(t)
	wantAgents := func(when string) {
		t.Helper()
		line := proc.Lineage(pid)
		if len(line) != 1 || !slices.Equal(line[0].Agents, []string{agent}) {
			t.Errorf("%s: %+v, want agent %s", when, line, agent)
		}
	}
	wantAgents("after the leader's end")
	if line := proc.Lineage(os.Getpid()); len(line) == 0 || len(line[0].Agents) > 0 {
		t.Errorf("this process: %+v", line)
	}
	h.Close()
	forget(t, dial(t, o, "x"))
	wantAgents("without a terminal")
	if n, err := holder.EndStaying(t.Context(), o.Dir); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if p, err := proc.Lookup(pid); err == nil && !p.Zombie {
		t.Error("what was left runs on")
	}
	testkit.Eventually(t, testkit.Patience, "nothing is left in the directory", func() bool {
		left, err := os.ReadDir(o.Dir)
		return len(left) == 0 && err == nil
	})
}

// holderOf is the process that has started the child.
func holderOf(t *testing.T, child int) int {
	t.Helper()
	list := must.Get(proc.List())(t)
	for _, p := range list {
		if p.Pid == child {
			return p.Parent
		}
	}
	t.Fatalf("no process %d", child)
	return 0
}

func TestTypingOnWindows(t *testing.T) {
	o := options(t)
	h := spawn(t, o, holder.Spec{ID: "x", Command: waiting(t)})
	stream(t, h, 0)
	readUntil(t, h, "ready")
	for i := range 5 {
		word := fmt.Sprintf("wörd-%d", i)
		must.Get(h.Write([]byte(word + "\r")))(t)
		readUntil(t, h, "got "+word)
	}
	must.Do(t, h.Signal("KILL"))
	all(t, h)
	if exit := h.Wait(); exit.Code != 137 || !strings.Contains(exit.Signal, "KILL") {
		t.Error(exit)
	}
	forget(t, h)
}
