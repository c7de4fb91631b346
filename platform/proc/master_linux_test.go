package proc_test

import (
	"os"
	"slices"
	"testing"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
)

// A process that has the other end of the terminal open is found; one with another
// terminal's end, or inside the terminal, is not.
func TestMasterHolders(t *testing.T) {
	for range 2 {
		p := must.Get(pty.Start(pty.Command{Path: "cat", Env: os.Environ()}))(t)
		defer func() {
			check.OK(t, p.Kill(t.Context(), 0))
			p.Close()
		}()
		in := must.Get(proc.Lookup(p.Pid()))(t)
		for _, first := range []int{os.Getpid(), 0, in.Pid, 1 << 30} {
			if all, err := proc.MasterHolders(in, first); err != nil || !slices.Contains(all, os.Getpid()) || slices.Contains(all, in.Pid) { // others are children that are just being started
				t.Errorf("looking at %d first: %v, %v; want %d", first, all, err, os.Getpid())
			}
		}
		in.TTY += 1 << 7 // another terminal
		if all, err := proc.MasterHolders(in, os.Getpid()); err != nil || slices.Contains(all, os.Getpid()) {
			t.Errorf("of another terminal: %v, %v", all, err)
		}
	}
	if _, err := proc.MasterHolders(proc.Info{ID: proc.ID{Pid: os.Getpid()}, TTY: 4<<8 | 1}, 0); err != proc.ErrNoPty {
		t.Errorf("of a console: %v", err)
	}
}

// The file that a process runs, whatever its argv says.
func TestExe(t *testing.T) {
	self := must.Get(os.Executable())(t)
	if line := proc.Lineage(os.Getpid()); len(line) == 0 || line[0].Exe != self {
		t.Errorf("%+v, want %s", line, self)
	}
}
