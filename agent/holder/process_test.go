package holder_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// The promise: a daemon is killed in the middle of a flood, again and again, and all
// output that the daemons have written together equals the child's.
func TestDaemonKilledUnderFlood(t *testing.T) {
	testkit.Unix(t, testkit.Bytes)
	o := options(t)
	kills := 0
	file := filepath.Join(t.TempDir(), "recorded")
	h := spawn(t, o, holder.Spec{ID: "x", Command: countCommand(t, 1e8), LogBytes: 1 << 20, AwayHold: testkit.Patience, Stall: testkit.Patience})
	h.Close()
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	for i := range testkit.Rounds(t, 30, 500) {
		kills++
		want := int64(0)
		if i%2 == 0 { // every other one gets something done
			want = size(t, file) + 1
		}
		killedDaemon(t, o, file, want, time.Duration(random.IntN(60))*time.Millisecond)
	}
	last := dial(t, o, "x")
	must.Do(t, last.Kill(t.Context(), 0))
	last.Close()
	lastDaemon(t, o, file)
	recorded := must.Get(os.ReadFile(file))(t)
	if wrong := checkCount(recorded, 0); wrong >= 0 {
		t.Errorf("seed %d: wrong at %d of %d bytes", seed, wrong, len(recorded))
	}
	last = dial(t, o, "x")
	if _, end := last.ExitedAt(); end != int64(len(recorded)) || end == 0 {
		t.Errorf("recorded %d of %d bytes", len(recorded), end)
	}
	t.Logf("%d kills, %d bytes", kills, len(recorded))
}

func size(t *testing.T, file string) int64 {
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	must.Do(t, err)
	return info.Size()
}

func TestNothingIsLeft(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	before := processes(t, o)
	for i := range testkit.Rounds(t, 60, 10_000) {
		h := spawn(t, o, holder.Spec{ID: fmt.Sprint("x", i), Command: sh("sleep 1000 & sleep 1000")})
		stream(t, h, 0)
		must.Do(t, h.Kill(t.Context(), 0))
		all(t, h)
		h.Wait()
		forget(t, h)
		h.Close()
	}
	if left, err := os.ReadDir(o.Dir); len(left) > 0 || err != nil {
		t.Errorf("files left: %v, %v", left, err)
	}
	testkit.Eventually(t, testkit.Patience, "no process is left", func() bool { return len(processes(t, o)) <= len(before) })
}

// processes are the holders of this test's binary and their children.
func processes(t *testing.T, o holder.Options) []int {
	t.Helper()
	list := must.Get(proc.List())(t)
	var found []int
	for _, p := range list {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
		if strings.HasPrefix(string(line), o.Argv[0]+"\x00holder\x00") && !p.Zombie {
			found = append(found, p.Pid)
		}
	}
	return found
}

// A child that closes its terminal has not ended.
func TestChildClosesOutput(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	dir := t.TempDir()
	command := sh("cd $0; echo bye; exec <&- >&- 2>&-; trap '' HUP; : > closed; until test -e end; do sleep 0.01; done; exit 4")
	command.Args = append(command.Args, dir)
	h := spawn(t, o, holder.Spec{ID: "x", Command: command})
	stream(t, h, 0)
	readUntil(t, h, "bye\r\n")
	testkit.Eventually(t, testkit.Patience, "its terminal is closed", func() bool {
		_, err := os.Stat(filepath.Join(dir, "closed"))
		return err == nil
	})
	if exit, ok := h.Exit(); ok {
		t.Errorf("exit %v before the end", exit)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
	if out := all(t, h); out != "" {
		t.Errorf("more output: %q", out)
	}
	if exit := h.Wait(); exit.Code != 4 {
		t.Error(exit)
	}
}

// A background process that keeps the terminal open does not keep it alive.
func TestBackgroundKeepsOutputOpen(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	sleeps := filepath.Join(t.TempDir(), "pid")
	command := sh(`trap '' HUP; sleep 1000 & echo $! >"$0"; printf last; exit 3`)
	command.Args = append(command.Args, sleeps)
	h := spawn(t, o, holder.Spec{ID: "x", Command: command})
	t.Cleanup(func() {
		if p, err := os.FindProcess(pidIn(t, sleeps)); err != nil || p.Kill() != nil {
			t.Error("what it left in the background is not there")
		}
	})
	stream(t, h, 0)
	if out := all(t, h); out != "last" {
		t.Errorf("output %q", out)
	}
	if exit := h.Wait(); exit.Code != 3 {
		t.Error(exit)
	}
	if err := h.Kill(t.Context(), 0); err != nil { // also after the end
		t.Error(err)
	}
}

func TestTwoDaemonsAtOnce(t *testing.T) {
	testkit.Unix(t, testkit.Bytes)
	o := options(t)
	h := spawn(t, o, holder.Spec{ID: "x", Command: countCommand(t, 1e8), LogBytes: 1 << 20})
	h.Close()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { // each takes over from the other
			for range 20 {
				c, err := holder.Dial(t.Context(), o, "x")
				if errors.Is(err, holder.ErrReplaced) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
					continue // already while it said hello
				}
				if err != nil {
					t.Error(err)
					continue
				}
				off := c.Base()
				if err := c.StreamFrom(off); err == nil {
					follow(t, c, off)
				}
				c.Close()
			}
		})
	}
	wg.Wait()
}

// follow reads 256 KiB or to the end of the connection.
func follow(t *testing.T, c *holder.Client, off int64) {
	buf := make([]byte, 32<<10)
	for start := off; off < start+256<<10; {
		n, err := c.Read(buf)
		if wrong := checkCount(buf[:n], off); wrong >= 0 {
			t.Errorf("wrong at %d", wrong)
			return
		}
		off += int64(n)
		var gap *holder.GapError
		if errors.As(err, &gap) {
			off = gap.To // the log went on between Dial and StreamFrom of a replaced daemon
			continue
		}
		if err != nil {
			if !errors.Is(err, holder.ErrReplaced) {
				t.Errorf("read: %v", err)
			}
			return
		}
	}
}

// A hang-up is not the end of a holder, SIGTERM is; a holder that was killed leaves a
// socket, which List removes.
func TestSignals(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	for _, c := range []struct {
		signal, script string
		exit           int
	}{
		{"TERM", "trap '' TERM HUP; echo $PPID; while :; do sleep 1000; done", 137},
		{"KILL", "echo $PPID; read x", -1},
	} {
		h := spawn(t, o, holder.Spec{ID: c.signal, Command: sh(c.script)})
		stream(t, h, 0)
		pid := strings.TrimSpace(readUntil(t, h, "\n"))
		for range 3 {
			send(t, "HUP", pid)
			send(t, "INT", pid)
		}
		must.Do(t, h.SetMeta([]byte("alive")))
		send(t, c.signal, pid)
		exit := h.Wait()
		<-h.Done()
		if exit.Code != c.exit || !errors.Is(h.Err(), holder.ErrLost) {
			t.Errorf("%s: exit %+v, %v", c.signal, exit, h.Err())
		}
		h.Close()
		testkit.Eventually(t, testkit.Patience, "the child is gone", func() bool {
			p, err := proc.Lookup(h.Pid())
			return err != nil || p.Zombie
		})
	}
	testkit.Eventually(t, testkit.Patience, "none is listed", func() bool { // one that dies still has its lock for a moment
		ids, err := holder.List(o.Dir)
		return len(ids) == 0 && err == nil
	})
	if left, err := os.ReadDir(o.Dir); len(left) > 0 || err != nil {
		t.Errorf("left %v, %v", left, err)
	}
}

func send(t *testing.T, signal, pid string) {
	t.Helper()
	if out, err := exec.Command("kill", "-"+signal, pid).CombinedOutput(); err != nil {
		t.Fatalf("kill: %v %s", err, out)
	}
}

func TestListKeepsLivingHolders(t *testing.T) {
	o := options(t)
	if ids, err := holder.List(o.Dir); len(ids) > 0 || err != nil {
		t.Errorf("without the directory: %v, %v", ids, err)
	}
	for _, id := range []string{"b", "a"} {
		spawn(t, o, holder.Spec{ID: id, Command: waiting(t)}).Close()
	}
	foreign := must.Get(ipc.Listen(filepath.Join(o.Dir, "c.sock")))(t)
	defer foreign.Close()
	for name, text := range map[string]string{"dead.sock.lock": "1\n", "note.txt": "", "bad name.sock": ""} {
		must.Do(t, os.WriteFile(filepath.Join(o.Dir, name), []byte(text), 0o600))
	}
	for range 2 {
		ids, err := holder.List(o.Dir)
		if !slices.Equal(ids, []string{"a", "b", "c"}) || err != nil {
			t.Errorf("listed %v, %v", ids, err)
		}
	}
	var names []string
	entries, _ := os.ReadDir(o.Dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"a.sock", "a.sock.lock", "b.sock", "b.sock.lock", "bad name.sock", "c.sock", "c.sock.lock", "note.txt"}
	if !slices.Equal(names, want) {
		t.Errorf("the directory has %v, want %v", names, want)
	}
}

// The environment and the arguments of a terminal are secrets: a look at the holder shows
// neither, nor the daemon's environment.
func TestHolderShowsNothing(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	t.Setenv("DAEMON_SECRET", "hunter2")
	command := sh("echo $PPID; read x")
	command.Env = append(command.Env, "TERMINAL_SECRET=hunter3")
	command.Args = append(command.Args, "hunter4")
	h := spawn(t, o, holder.Spec{ID: "x", Command: command})
	stream(t, h, 0)
	pid := strings.TrimSpace(readUntil(t, h, "\n"))
	for _, name := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(filepath.Join("/proc", pid, name))
		if err != nil {
			t.Skip("this system does not show it:", err)
		}
		if strings.Contains(string(text), "hunter") {
			t.Errorf("%s: %q", name, text)
		}
	}
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	if f := strings.Fields(rest); err != nil || f[3] != pid || f[4] != "0" {
		t.Errorf("session and terminal of %s: %v, %v", pid, f, err)
	}
}

// A process that reaches the socket and sends garbage is disconnected and disturbs
// nobody.
func TestGarbageOnTheSocket(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	h := spawn(t, o, holder.Spec{ID: "x", Command: sh("read x; echo got $x")})
	stream(t, h, 0)
	hello := string(helloOf(1, 1, ""))
	for name, text := range map[string]string{
		"nothing":      "",
		"another":      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"short hello":  "TETHER-H\x00\x02\x00\x01",
		"long hello":   "TETHER-H\xff\xff" + strings.Repeat("x", 70000),
		"no version":   "TETHER-H\x00\x0c\x00\x07\x00\x09\x00\x00\x00\x00\x00\x00\x00\x00",
		"no nonce":     "TETHER-H\x00\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00",
		"no proof":     hello + string(frame(0x01, strings.Repeat("\x00", 12))),
		"a wrong one":  hello + string(frame(0x0c, strings.Repeat("\x00", 32))),
		"half a hello": hello[:9],
	} {
		conn := must.Get(ipc.Dial(t.Context(), filepath.Join(o.Dir, "x.sock")))(t)
		_ = conn.SetDeadline(time.Now().Add(testkit.Patience))
		_, _ = io.WriteString(conn, text)
		if name == "half a hello" || name == "nothing" {
			conn.Close()
			continue
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: not cut off", name)
		}
		conn.Close()
	}
	if _, err := h.Write([]byte("through\n")); err != nil { // nobody took its place
		t.Fatal(err)
	}
	readUntil(t, h, "got through\r\n")
}
