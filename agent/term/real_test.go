//go:build unix

package term_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// real spawns a real child on a real pty.
func real(t *testing.T, p *term.Pool, s term.Spec) term.Handle {
	t.Helper()
	s.Cwd, s.Env = "/", os.Environ()
	return must.Get(p.As(term.User).Spawn(s))(t)
}

func realPool(t *testing.T, o term.Options) *term.Pool {
	p := term.NewPool(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		check.OK(t, p.Close(ctx))
	})
	return p
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// all reads a terminal to its exit.
func all(t *testing.T, h term.Handle, v output.View) (string, *vocab.Exit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	r := reader(t, h, output.ReaderOptions{View: v, Hold: true})
	var out bytes.Buffer
	var exit *vocab.Exit
	buf := make([]byte, 32<<10)
	for {
		ev, err := r.Next(ctx, buf)
		if err == io.EOF {
			return out.String(), exit
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", out.Len(), err)
		}
		out.Write(ev.Data)
		if ev.Mark != nil && ev.Mark.Kind == output.MarkExited {
			exit = &ev.Mark.Exit
		}
	}
}

func TestRealChildren(t *testing.T) {
	p := realPool(t, term.Options{})
	for _, c := range []struct {
		name, script, out string
		code              int
	}{
		{"dies at once", "exit 3", "", 3},
		{"prints and dies", "printf hello; exit 0", "hello", 0},
		{"killed by a signal", "kill -9 $$", "", 137},
		{"closes its output but lives", "printf bye; exec >&- 2>&- <&-; sleep 0.3; exit 4", "bye", 4},
		{"leaves a background process", "printf fg; (sleep 30; printf bg) & exit 5", "fg", 5},
		{"invalid UTF-8", `printf 'a\377b'`, "a\uFFFDb", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, exit := all(t, real(t, p, term.Spec{Command: sh(c.script)}), output.ViewText)
			if out != c.out || exit == nil || exit.Code != c.code {
				t.Errorf("out %q, exit %+v; want %q and %d", out, exit, c.out, c.code)
			}
		})
	}
}

// Output printed right before the child's death must not be lost, however late it is
// read.
func TestLastOutputIsNeverLost(t *testing.T) {
	p := realPool(t, term.Options{KeepExited: 1000})
	for i := range 100 {
		n := 10 + i*131
		h := real(t, p, term.Spec{Command: sh(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; exit 7", n))})
		out, exit := all(t, h, output.ViewText)
		if len(out) != n || exit.Code != 7 {
			t.Fatalf("round %d: %d bytes and exit %d, want %d and 7", i, len(out), exit.Code, n)
		}
	}
}

func TestMegabytesWithoutANewline(t *testing.T) {
	size := testkit.Load(100_000_000, 20_000_000)
	p := realPool(t, term.Options{Stall: testkit.Patience})
	for range testkit.Rounds(t, 1, 10) {
		h := real(t, p, term.Spec{Command: sh(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size)), OnSlow: term.Hold})
		r := reader(t, h, output.ReaderOptions{Hold: true})
		total := 0
		buf := make([]byte, 32<<10)
		for {
			ev, err := r.Next(t.Context(), buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("after %d bytes: %v", total, err)
			}
			total += len(ev.Data)
		}
		if i := h.Info(); total != size || i.Retained > 4<<20 {
			t.Errorf("read %d bytes, %d retained; want %d and at most 4 MiB", total, i.Retained, size)
		}
	}
}

func TestTypingIntoARealShell(t *testing.T) {
	p := realPool(t, term.Options{})
	h := real(t, p, term.Spec{Command: []string{"sh"}, Size: term.Size{Cols: 91, Rows: 33}})
	for _, typed := range []string{"stty size\r", "echo a$((40+2))b\r", "exit 6\r"} {
		must.Do(t, h.Write(t.Context(), []byte(typed)))
	}
	out, exit := all(t, h, output.ViewScreen)
	if !strings.Contains(out, "33 91") || !strings.Contains(out, "a42b") || exit.Code != 6 {
		t.Errorf("exit %+v, output %q; want 6, the size 33 91 and a42b", exit, out)
	}
}

func TestKillLeavesNoDescendant(t *testing.T) {
	p := realPool(t, term.Options{KillGrace: 100 * time.Millisecond})
	dir := t.TempDir()
	script := fmt.Sprintf(`trap '' HUP TERM; (trap '' HUP TERM; setsid sh -c 'echo $$ > %[1]s/a; sleep 1000' & sleep 1000) &
		sh -c 'echo $$ > %[1]s/b; exec sleep 1000' & echo ready; sleep 1000`, dir)
	h := real(t, p, term.Spec{Command: sh(script)})
	r := reader(t, h, output.ReaderOptions{})
	must.Get(r.Next(t.Context(), make([]byte, 64)))(t)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	must.Do(t, h.Kill(ctx))
	for _, name := range []string{"a", "b"} {
		pid, err := os.ReadFile(dir + "/" + name)
		if err != nil {
			continue // killed before it could write
		}
		// A dead process may wait for an init that does not reap.
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err == nil && !bytes.Contains(stat, []byte(") Z ")) {
			t.Errorf("process %s is alive: %s", name, stat)
		}
	}
	if i := h.Info(); i.Exit == nil {
		t.Error("Kill returned before the exit was recorded")
	}
}
