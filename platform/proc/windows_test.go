//go:build windows

package proc_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// helperVar makes the test binary run one of helpers instead of the tests.
const helperVar = "PROC_TEST_HELPER"

var helpers = map[string]func(){
	"hang":      testkit.Hang,
	"listening": listening,
	"detached": func() {
		in, _ := io.ReadAll(os.Stdin)
		fmt.Printf("%s%s-%s\n", in, os.Getenv("A"), os.Getenv(proc.TagVar))
		fmt.Fprintln(os.Stderr, "wrong")
		os.Exit(4)
	},
	"session": func() {
		stop := proc.StopSignals()
		number := syscall.Stdin
		in, out := proc.Inherited(0), proc.Inherited(1)
		text, _ := io.ReadAll(in)
		in.Close()
		fmt.Fprintf(out, "got %s, %v", text, wakeable(number))
		out.Close()
		<-stop
		os.Exit(9)
	},
	"parent": func() {
		child := self("hang")
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		testkit.Hang()
	},
}

func TestMain(m *testing.M) {
	if name := os.Getenv(helperVar); name != "" {
		helpers[name]()
		return
	}
	os.Exit(m.Run())
}

func self(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVar+"="+name, testkit.ForHang())
	return cmd
}

// wakeable opens pipes until one has this number and returns an error if that one has a
// fault. It returns nil if another thread was faster.
func wakeable(number syscall.Handle) error {
	name, err := windows.UTF16PtrFromString(fmt.Sprintf(`\\.\pipe\tether-test-%d`, os.Getpid()))
	if err != nil {
		return err
	}
	for range 100 {
		h, err := windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED, windows.PIPE_TYPE_BYTE,
			windows.PIPE_UNLIMITED_INSTANCES, 0, 0, 0, nil)
		if err != nil {
			return err
		}
		if syscall.Handle(h) == number {
			return os.NewFile(uintptr(h), "pipe").SetDeadline(time.Now())
		}
	}
	return nil
}

const patience = testkit.Patience

func TestSeesItselfAndItsChild(t *testing.T) {
	testkit.Leaks(t)
	child := self("hang")
	must.Do(t, child.Start())
	defer child.Wait()
	defer child.Process.Kill()
	all := must.Get(proc.List())(t)
	rows := map[int]proc.Info{}
	for _, p := range all {
		rows[p.Pid] = p
	}
	me, it := rows[os.Getpid()], rows[child.Process.Pid]
	if me.Pid == 0 || me.Start == 0 || me.Zombie {
		t.Errorf("this process: %+v", me)
	}
	if it.Parent != me.Pid || it.Start < me.Start || it.Zombie {
		t.Errorf("its child: %+v, beside %+v", it, me)
	}
	if again, err := proc.Lookup(it.Pid); err != nil || again.ID != it.ID {
		t.Errorf("Lookup(%d) = %+v, %v; List had %+v", it.Pid, again, err, it)
	}
	child.Process.Kill()
	testkit.Eventually(t, patience, "the child has ended", func() bool {
		p, err := proc.Lookup(it.Pid)
		return err != nil || p.Zombie
	})
	if p, err := proc.Lookup(0x7ffffff0); err == nil {
		t.Errorf("a number nobody has: %+v", p)
	}
	if left, err := proc.Tagged(proc.Tag("x")); err != proc.ErrUnsupported {
		t.Errorf("Tagged: %v, %v", left, err)
	}
}

// inJob starts a helper in a job.
func inJob(t *testing.T, j *proc.Job, name string) *exec.Cmd {
	t.Helper()
	cmd := self(name)
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED}
	must.Do(t, cmd.Start())
	h := must.Get(windows.OpenProcess(windows.PROCESS_ALL_ACCESS, false, uint32(cmd.Process.Pid)))(t)
	defer windows.CloseHandle(h)
	must.Do(t, windows.AssignProcessToJobObject(j.Handle(), h))
	if status, _, _ := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess").Call(uintptr(h)); status != 0 {
		t.Fatalf("resume: %x", status)
	}
	return cmd
}

func TestJobHoldsTheTree(t *testing.T) {
	for _, how := range []string{"kill", "close", "spare"} {
		t.Run(how, func(t *testing.T) { testJob(t, how) })
	}
}

func testJob(t *testing.T, how string) {
	if how == "spare" {
		testkit.NotOnWine(t, "its server crashes when a job is closed that spares its members")
	}
	testkit.Leaks(t)
	j, err := proc.NewJob()
	must.Do(t, err)
	if empty, err := j.Empty(); !empty || err != nil {
		t.Errorf("a new job is empty: %t, %v", empty, err)
	}
	cmd := inJob(t, j, "parent")
	var pids []int
	testkit.Eventually(t, patience, "parent and child are in the job", func() bool {
		pids, err = j.Pids()
		return err != nil || len(pids) == 2
	})
	must.Do(t, err)
	ended := func() bool {
		for _, pid := range pids {
			if p, err := proc.Lookup(pid); err == nil && !p.Zombie {
				return false
			}
		}
		return true
	}
	switch how {
	case "kill":
		check.OK(t, j.Kill(3))
		if empty, err := j.Empty(); !empty || err != nil {
			t.Errorf("after Kill the job is empty: %t, %v", empty, err)
		}
	case "spare":
		check.OK(t, j.Spare())
	}
	check.OK(t, j.Close())
	if how == "spare" {
		if ended() {
			t.Error("members of a job that was told to spare them are gone")
		}
		for _, pid := range pids {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
	}
	testkit.Eventually(t, patience, how+": parent and child have ended", ended)
	if err := cmd.Wait(); how == "kill" && cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("killed: %v, want status 3", err)
	}
}

// An agent's job is one and the same for all who ask for it, as long as one has it open.
func TestAgentJob(t *testing.T) {
	testkit.Leaks(t)
	open := func(principal string) *proc.Job {
		t.Helper()
		j := must.Get(proc.AgentJob(principal))(t)
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	name := fmt.Sprintf("test %d\\é", os.Getpid())
	one, again, other := open(name), open(name), open(name+"x")
	cmd := inJob(t, one, "parent")
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	testkit.Eventually(t, patience, "the other handle sees parent and child", func() bool {
		pids, err := again.Pids()
		return err == nil && len(pids) == 2
	})
	if empty, err := other.Empty(); !empty || err != nil {
		t.Errorf("another agent's job is empty: %t, %v", empty, err)
	}
	check.OK(t, again.Kill(3))
}

func TestStartDetached(t *testing.T) {
	testkit.Leaks(t)
	log := filepath.Join(t.TempDir(), "deep", "log")
	env := append(os.Environ(), helperVar+"=detached", "A=1", proc.Tag("x"))
	for i := 1; i <= 2; i++ { // the second time the log is there already
		p := must.Get(proc.StartDetached(os.Args[0], []string{"x"}, env, log, nil))(t)
		state, err := p.Wait()
		if err != nil || state.ExitCode() != 4 {
			t.Errorf("ended with %v, %v; want 4", state, err)
		}
		got, err := os.ReadFile(log)
		if want := strings.Repeat("1-\nwrong\n", i); err != nil || string(got) != want {
			t.Errorf("log is %q, %v; want %q", got, err, want)
		}
	}
	for name, c := range map[string][2]string{
		"relative program": {"x.exe", log}, "relative log": {os.Args[0], "log"}, "missing program": {`C:\no\such.exe`, log},
		"log is directory": {os.Args[0], t.TempDir()},
	} {
		if p, err := proc.StartDetached(c[0], []string{"x"}, env, c[1], nil); err == nil {
			p.Kill()
			p.Wait()
			t.Errorf("%s: started", name)
		}
	}
}

func TestStartSession(t *testing.T) {
	testkit.Leaks(t)
	in, inW, err := os.Pipe()
	must.Do(t, err)
	out, outW, err := os.Pipe()
	must.Do(t, err)
	defer out.Close()
	p, err := proc.StartSession(os.Args[0], []string{"x"}, append(os.Environ(), helperVar+"=session"), in, outW)
	in.Close()
	outW.Close()
	must.Do(t, err)
	fmt.Fprint(inW, "hello")
	inW.Close()
	if got, err := io.ReadAll(out); string(got) != "got hello, <nil>" || err != nil {
		t.Errorf("it says %q, %v", got, err)
	}
	must.Do(t, proc.Terminate(p))
	if state, err := p.Wait(); err != nil || state.ExitCode() != 9 {
		t.Errorf("asked to end: %v, %v; want its own 9", state, err)
	}
	if err := proc.Terminate(p); err != nil {
		t.Errorf("after its end: %v", err)
	}
	if _, err := proc.StartSession("x.exe", nil, nil); err == nil {
		t.Error("a relative path was accepted")
	}
	if _, err := proc.StartSession(os.Args[0], nil, nil, in, in, in, in); err == nil {
		t.Error("four files were accepted")
	}
	if f := proc.Inherited(3); f != nil {
		t.Errorf("a fourth file: %v", f.Name())
	}
}

// A process that does not listen is ended.
func TestTerminateTheDeaf(t *testing.T) {
	testkit.Leaks(t)
	cmd := self("hang")
	must.Do(t, cmd.Start())
	check.OK(t, proc.Terminate(cmd.Process))
	cmd.Wait()
}
