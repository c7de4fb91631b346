package holder_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

func TestSpawnReadExit(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	for _, c := range []struct {
		name, script, out string
		exit              pty.Exit
	}{
		{"status", "printf hello; exit 7", "hello", pty.Exit{Code: 7}},
		{"signal", "kill -9 $$", "", pty.Exit{Code: 137, Signal: "SIGKILL"}},
		{"size", "stty size", "33 101\r\n", pty.Exit{}},
		{"environment", "env | grep -v ^PWD | grep -v ^_=| grep -v ^SHLVL", "PATH=/bin:/usr/bin\r\n", pty.Exit{}},
		{"descriptors", "ls /dev/fd | wc -l", "4\r\n", pty.Exit{}}, // 0 to 2 and that of the directory
	} {
		t.Run(c.name, func(t *testing.T) {
			command := sh(c.script)
			command.Size = pty.Size{Cols: 101, Rows: 33}
			h := spawn(t, o, holder.Spec{ID: "pty-" + c.name, Command: command, Meta: []byte("meta of " + c.name)})
			stream(t, h, 0)
			if out := all(t, h); out != c.out {
				t.Errorf("output %q, want %q", out, c.out)
			}
			if exit := h.Wait(); exit != c.exit {
				t.Errorf("exit %+v, want %+v", exit, c.exit)
			}
			if at, end := h.ExitedAt(); time.Since(at) > time.Hour || end != int64(len(c.out)) {
				t.Errorf("exited at %v, %d", at, end)
			}
			forget(t, h)
			if ids, err := holder.List(o.Dir); len(ids) > 0 || err != nil {
				t.Errorf("after Forget: %v, %v", ids, err)
			}
		})
	}
}

func TestStartErrorsSurvive(t *testing.T) {
	o := options(t)
	for _, c := range []struct {
		name    string
		command pty.Command
		what    string
		is      error
	}{
		{"program", pty.Command{Path: "/nowhere/at all"}, "program", fs.ErrNotExist},
		{"directory", pty.Command{Path: self(t), Dir: testkit.Abs("/nowhere")}, "directory", fs.ErrNotExist},
		{"permission", pty.Command{Path: "/etc/passwd"}, "program", fs.ErrPermission},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.is == fs.ErrPermission {
				testkit.Unix(t, testkit.Modes)
			}
			_, err := holder.Spawn(t.Context(), o, holder.Spec{ID: "x", Command: c.command})
			_, direct := pty.Start(c.command)
			var start *pty.StartError
			if !errors.As(err, &start) || start.What != c.what || !errors.Is(err, c.is) || err.Error() != direct.Error() {
				t.Errorf("got %v, want %v that is %v", err, direct, c.is)
			}
			if left, err := fs.Glob(dirFS(o.Dir), "*"); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestIDInUse(t *testing.T) {
	o := options(t)
	spec := holder.Spec{ID: "x", Command: waiting(t)}
	first := spawn(t, o, spec)
	if _, err := holder.Spawn(t.Context(), o, spec); !errors.Is(err, holder.ErrInUse) {
		t.Errorf("second: %v", err)
	}
	if err := first.Forget(t.Context()); !errors.Is(err, holder.ErrRunning) {
		t.Errorf("Forget while it runs: %v", err)
	}
	for _, id := range []string{"", "a/b", "..", strings.Repeat("x", 65), "ä"} {
		if _, err := holder.Spawn(t.Context(), o, holder.Spec{ID: id, Command: waiting(t)}); err == nil {
			t.Errorf("id %q was accepted", id)
		}
	}
	if _, err := holder.Dial(t.Context(), o, "y"); !errors.Is(err, holder.ErrGone) {
		t.Errorf("Dial of nobody: %v", err)
	}
}

func TestTypeAndResize(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	h := spawn(t, options(t), holder.Spec{ID: "x", Command: sh("read line; echo got $line; stty size; read line")})
	stream(t, h, 0)
	must.Do(t, h.Resize(pty.Size{Cols: 99, Rows: 12}))
	if n, err := h.Write([]byte("word\n")); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	readUntil(t, h, "got word\r\n12 99\r\n")
	if err := h.Resize(pty.Size{}); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Errorf("size 0: %v", err)
	}
	must.Do(t, h.Kill(t.Context(), 0))
	all(t, h)
	if exit := h.Wait(); exit.Code <= 128 || exit.Signal == "" {
		t.Error(exit)
	}
}

func TestReconnectAnywhere(t *testing.T) {
	testkit.Unix(t, testkit.Bytes)
	o := options(t)
	const lines = 20_000
	h := spawn(t, o, holder.Spec{ID: "x", Command: countCommand(t, lines), Meta: []byte("m")})
	stream(t, h, 0)
	if out := all(t, h); len(out) != 10*lines || checkCount([]byte(out), 0) >= 0 {
		t.Fatalf("%d bytes, wrong at %d", len(out), checkCount([]byte(out), 0))
	}
	h.Close()
	for _, off := range []int64{0, 1, 9, 4095, 65536, 10*lines - 1, 10 * lines} {
		again := dial(t, o, "x")
		if again.Base() != 0 || again.End() != 10*lines || string(again.Meta()) != "m" || again.Pid() != h.Pid() {
			t.Errorf("found %d to %d, meta %q", again.Base(), again.End(), again.Meta())
		}
		stream(t, again, off)
		if out := all(t, again); int64(len(out)) != 10*lines-off || checkCount([]byte(out), off) >= 0 {
			t.Errorf("from %d: %d bytes, wrong at %d", off, len(out), checkCount([]byte(out), off))
		}
		if exit := again.Wait(); exit.Code != 0 {
			t.Error(exit)
		}
		again.Close()
	}
	forget(t, dial(t, o, "x"))
}

func TestMetaAndCheckpoints(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	o := options(t)
	h := spawn(t, o, holder.Spec{ID: "x", Command: sh("echo 0123456789; read x")})
	stream(t, h, 0)
	readUntil(t, h, "9\r\n")
	big := []byte(strings.Repeat("b", 64<<10))
	want := []holder.Checkpoint{{Off: 0, Blob: []byte("start")}, {Off: 5, Blob: big}, {Off: 12, Blob: nil}}
	for _, c := range want {
		must.Do(t, h.Checkpoint(c.Off, c.Blob))
	}
	if err := h.Checkpoint(1000, nil); err == nil {
		t.Error("a checkpoint beyond the end was accepted")
	}
	if err := h.Checkpoint(1, append(big, 'x')); err == nil {
		t.Error("a checkpoint that is too large was accepted")
	}
	must.Do(t, h.SetMeta(big))
	again := dial(t, o, "x")
	if diff := cmp.Diff(want, again.Checkpoints()); diff != "" {
		t.Error(diff)
	}
	if string(again.Meta()) != string(big) {
		t.Errorf("meta has %d bytes", len(again.Meta()))
	}
	<-h.Done()
	if !errors.Is(h.Err(), holder.ErrReplaced) {
		t.Errorf("the one before: %v", h.Err())
	}
	if _, err := h.Write([]byte("x")); !errors.Is(err, holder.ErrReplaced) {
		t.Errorf("Write of the one before: %v", err)
	}
}

func TestSpawnCancelled(t *testing.T) {
	o := options(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := holder.Spawn(ctx, o, holder.Spec{ID: "x", Command: sh("sleep 60")}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if ids, err := holder.List(o.Dir); len(ids) > 0 || err != nil {
		t.Errorf("left: %v, %v", ids, err)
	}
}
