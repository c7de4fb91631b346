//go:build linux || darwin

package proc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

func TestSeesItselfAndItsChild(t *testing.T) {
	testkit.Leaks(t)
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, child.Start())
	defer child.Wait()
	defer child.Process.Kill()
	all := must.Get(proc.List())(t)
	rows := map[int]proc.Info{}
	for _, p := range all {
		rows[p.Pid] = p
	}
	me, it := rows[os.Getpid()], rows[child.Process.Pid]
	if me.Pid == 0 || me.Parent != os.Getppid() || me.Group != syscall.Getpgrp() || me.Start == 0 {
		t.Errorf("this process: %+v", me)
	}
	if it.Parent != me.Pid || it.Group != it.Pid || it.Session != me.Session || it.Start < me.Start || it.Zombie {
		t.Errorf("its child: %+v, beside %+v", it, me)
	}
	if again, err := proc.Lookup(it.Pid); err != nil || again.ID != it.ID {
		t.Errorf("Lookup(%d) = %+v, %v; List had %+v", it.Pid, again, err, it)
	}
	child.Process.Kill()
	testkit.Eventually(t, testkit.Patience, "the child is shown as a zombie", func() bool {
		p, err := proc.Lookup(it.Pid)
		return err == nil && p.Zombie
	})
	child.Wait()
	if p, err := proc.Lookup(it.Pid); err == nil && p.ID == it.ID {
		t.Errorf("still there after it was waited for: %+v", p)
	}
}

// A reused number belongs to another process: only number and start time together name a
// process.
func TestKillComparesStartTimes(t *testing.T) {
	testkit.Leaks(t)
	child := exec.Command("sleep", "1000")
	proc.InSession(child)
	must.Do(t, child.Start())
	defer child.Wait()
	defer child.Process.Kill()
	p := must.Get(proc.Lookup(child.Process.Pid))(t)
	old := proc.ID{Pid: p.Pid, Start: p.Start - 1} // as if an earlier leader had had this number
	check.OK(t, (proc.Tree{Leader: old, Reaped: true, Tag: proc.Tag("nobody has this")}).Kill(t.Context(), 0))
	if now, err := proc.Lookup(p.Pid); err != nil || now.Zombie {
		t.Errorf("an innocent process was killed: %+v, %v", now, err)
	}
}

func TestStartDetached(t *testing.T) {
	testkit.Leaks(t)
	log := filepath.Join(t.TempDir(), "deep", "log")
	script := `cat; pwd; echo "$A-$` + proc.TagVar + `"; echo wrong >&2; exit 4`
	for i := 1; i <= 2; i++ { // the second time the log is there already
		p := must.Get(proc.StartDetached("/bin/sh", []string{"sh", "-c", script}, []string{"A=1", proc.Tag("x")}, log, nil))(t)
		if row, err := proc.Lookup(p.Pid); err == nil && !row.Zombie && row.Session != 0 && row.Session != p.Pid {
			t.Errorf("its session is %d, its number %d", row.Session, p.Pid)
		}
		state, err := p.Wait()
		if err != nil || state.ExitCode() != 4 {
			t.Errorf("ended with %v, %v; want 4", state, err)
		}
		got, err := os.ReadFile(log)
		if want := strings.Repeat("/\n1-\nwrong\n", i); err != nil || string(got) != want {
			t.Errorf("log is %q, %v; want %q", got, err, want)
		}
	}
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log has mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestStartDetachedReportsFaults(t *testing.T) {
	testkit.Leaks(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string][2]string{
		"relative program": {"sh", filepath.Join(dir, "log")},
		"relative log":     {"/bin/sh", "log"},
		"missing program":  {"/no/such", filepath.Join(dir, "log")},
		"log below a file": {"/bin/sh", filepath.Join(file, "log")},
		"log is directory": {"/bin/sh", dir},
	} {
		if p, err := proc.StartDetached(c[0], []string{"x"}, nil, c[1], nil); err == nil {
			p.Kill()
			p.Wait()
			t.Errorf("%s: started", name)
		}
	}
}
