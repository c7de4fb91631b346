//go:build linux || darwin

package holder_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// typing runs a script with a file to write to, and returns the script's output until it
// prints ready.
func typing(t *testing.T, script string) (h *holder.Client, before, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "file")
	command := sh(script)
	command.Args = append(command.Args, file)
	h = spawn(t, options(t), holder.Spec{ID: "x", Command: command})
	stream(t, h, 0)
	return h, readUntil(t, h, "ready"), file
}

// parent is the process that the script says is its own parent's: the holder.
func parent(t *testing.T, said string) *os.Process {
	t.Helper()
	line, _, _ := strings.Cut(said, "\r\n")
	pid := must.Get(strconv.Atoi(line))(t)
	return must.Get(os.FindProcess(pid))(t)
}

func eventuallyIn(t *testing.T, file, want string) {
	t.Helper()
	testkit.Eventually(t, testkit.Patience, want+" is in the file", func() bool {
		got, _ := os.ReadFile(file) // it is not there yet
		return string(got) == want
	})
}

// A key reaches the child without the holder, here one that is stopped.
func TestKeysGoStraightToThePty(t *testing.T) {
	h, said, file := typing(t, `echo $PPID; stty -echo; printf ready; read line; echo $line >"$0"; read line`)
	its := parent(t, said)
	must.Do(t, its.Signal(unix.SIGSTOP))
	defer its.Signal(unix.SIGCONT)
	if n, err := h.TryWrite([]byte("word\n")); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	eventuallyIn(t, file, "word\n")
}

// Keys typed in parts arrive in order, directly or through the holder, and a child that
// does not read blocks nobody.
func TestKeysStayInOrder(t *testing.T) {
	h, _, file := typing(t, `stty raw -echo; printf ready; read x; head -c 100000 >"$0"`)
	if n, err := h.TryWrite([]byte("\n")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	want := strings.Repeat("0123456789", 10000)
	for rest := want; rest != ""; {
		n, err := h.TryWrite([]byte(rest))
		if err == nil && n == 0 {
			n, err = h.Write([]byte(rest[:1])) // which waits
		}
		must.Do(t, err)
		rest = rest[n:]
	}
	all(t, h)
	eventuallyIn(t, file, want)
}

// The daemon has the pty, too, and still the child ends when the holder is killed, with
// or without a reader.
func TestKillOfAHolderEndsItsChild(t *testing.T) {
	h, said, _ := typing(t, `echo $PPID; printf ready; read line`)
	if !h.HasKeyboard() {
		t.Fatal("the daemon has no descriptor of the pty")
	}
	must.Do(t, parent(t, said).Kill())
	testkit.Eventually(t, testkit.Patience, "the child has ended", func() bool {
		_, err := proc.Lookup(h.Pid())
		return err != nil
	})
}

// Nor does it keep the terminal open after the exit, or the connection's end.
func TestTheKeyboardIsClosed(t *testing.T) {
	h, _, file := typing(t, `trap "" HUP; (while test ! -e "$0.go"; do sleep 0.01; done; while printf x; do sleep 0.01; done; echo over >"$0") 2>&- & printf ready`)
	all(t, h)
	if h.HasKeyboard() {
		t.Error("the daemon has the pty of a child that has exited")
	}
	must.Do(t, os.WriteFile(file+".go", nil, 0o600))
	eventuallyIn(t, file, "over\n")

	h, _, _ = typing(t, `printf ready; read line`)
	h.Close()
	if h.HasKeyboard() {
		t.Error("the daemon has the pty after the connection")
	}
	if n, err := h.TryWrite([]byte("x")); n != 0 || err != nil {
		t.Errorf("after Close TryWrite = %d, %v", n, err)
	}
}

// Only processes with the key get the descriptor.
func TestWhoGetsTheKeyboard(t *testing.T) {
	o := options(t)
	spawn(t, o, holder.Spec{ID: "x", Command: sh("read x")})
	conn := must.Get(net.Dial("unix", filepath.Join(o.Dir, "x.sock")))(t)
	defer conn.Close()
	must.Get(conn.Write(append(helloOf(1, 1, ""), frame(0x0c, strings.Repeat("?", 32))...)))(t)
	var p, rights [4096]byte
	for read := 0; ; {
		n, m, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(p[:], rights[:])
		if m > 0 {
			t.Error("one without the key was given a descriptor")
		}
		if read += n; err != nil || n == 0 {
			if read <= helloSize {
				t.Errorf("%d bytes, then %v; want to be refused", read, err)
			}
			return
		}
	}
}
