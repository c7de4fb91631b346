package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	signals "os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"

	"tether/platform/secret"
)

// StartDetached starts a program that outlives this process and its console: without a
// window and in the root directory of the system's drive, so that it keeps no other drive
// busy. in is its standard input; nil means none. All its output is appended to logFile,
// which only the user may read. path is absolute; argv is the whole argument list,
// beginning with the program's name; env is its whole environment, without the mark of a
// terminal from which it may have been started. It inherits no other handles. The caller
// may Wait, to learn of an early end, or Release.
//
// If this process is in a job that its children cannot leave, as in a terminal of ours,
// the program is started as a child of the person's desktop. Without a desktop, as in a
// session over the network, it stays in that job and ends with it.
func StartDetached(path string, argv, env []string, logFile string, in *os.File) (*os.Process, error) {
	if !filepath.IsAbs(path) || !filepath.IsAbs(logFile) {
		return nil, fmt.Errorf("start %q with log %q: both paths must be absolute", path, logFile)
	}
	if err := secret.Dir(filepath.Dir(logFile)); err != nil {
		return nil, fmt.Errorf("make the log's directory: %w", err)
	}
	log, err := secret.OpenAppend(logFile)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	if in == nil {
		if in, err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	p, err := startHidden(path, argv, WithoutTag(env), []*os.File{in, log, log})
	if err != nil {
		return nil, fmt.Errorf("start detached: %w", err)
	}
	return p, nil
}

// maxExtra is the number of files that StartSession can pass on Windows: they replace the
// standard files, which nobody reads there.
const maxExtra = 3

// StartSession starts a program that lives on when this process and its console are gone,
// as StartDetached does, but without a log: it reads nothing, its output goes nowhere,
// and it gets extra, at most three, which it finds by Inherited. path is absolute; argv
// is the whole argument list; env is the whole environment. The caller may Wait, to learn
// of its end, or Release.
func StartSession(path string, argv, env []string, extra ...*os.File) (*os.Process, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("start %q: the path must be absolute", path)
	}
	if len(extra) > maxExtra {
		return nil, fmt.Errorf("start %q with %d files: at most %d", path, len(extra), maxExtra)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := append(slices.Clone(extra), null, null, null)
	p, err := startHidden(path, argv, env, files[:maxExtra])
	if err != nil {
		return nil, fmt.Errorf("start in a new session: %w", err)
	}
	return p, nil
}

// InSession changes nothing: Windows has no sessions of that kind, and a Tree is found
// there by its parents.
func InSession(*exec.Cmd) {}

// Inherited returns the file that StartSession was given as the i-th extra one, in the
// program that it has started.
func Inherited(i int) *os.File {
	std := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	if i < 0 || i >= len(std) {
		return nil
	}
	// When it is closed, Windows gives its number to the next handle that is opened, and
	// package os would take that for the standard input: a pipe would hold a thread and
	// have no deadline (Go 1.25 to 1.26, golang/go #75949).
	syscall.Stdin = syscall.InvalidHandle
	return std[i]
}

// startHidden starts a program with an invisible console, outside this process's job if
// possible. The program gets no process group of its own, because programs in a new group
// ignore Ctrl+C, and so do their children.
func startHidden(path string, argv, env []string, files []*os.File) (*os.Process, error) {
	root, err := windows.GetSystemWindowsDirectory()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(env, func(e string) bool { return len(e) > 11 && strings.EqualFold(e[:11], "SystemRoot=") }) {
		env = append(slices.Clip(env), "SystemRoot="+root) // without it programs cannot load their libraries
	}
	start := func(flags uint32, parent windows.Handle) (*os.Process, error) {
		return os.StartProcess(path, argv, &os.ProcAttr{
			Dir: filepath.VolumeName(root) + `\`, Env: env, Files: files,
			Sys: &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NO_WINDOW | flags, ParentProcess: syscall.Handle(parent)},
		})
	}
	p, err := start(windows.CREATE_BREAKAWAY_FROM_JOB, 0)
	if !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return p, err
	}
	if desktop, err := desktopProcess(); err == nil { // a child is in the jobs of its parent, whichever process starts it
		defer windows.CloseHandle(desktop)
		if p, err := start(0, desktop); err == nil {
			return p, nil
		}
	}
	return start(0, 0)
}

// desktopProcess is the person's Explorer, which is in no job.
func desktopProcess() (windows.Handle, error) {
	window := windows.GetShellWindow()
	if window == 0 {
		return 0, errors.New("no desktop session")
	}
	var pid uint32
	if _, err := windows.GetWindowThreadProcessId(window, &pid); err != nil {
		return 0, err
	}
	return windows.OpenProcess(windows.PROCESS_CREATE_PROCESS|windows.PROCESS_DUP_HANDLE, false, pid)
}

// stopEvent is the name of the event by which a process is asked to end. It is there
// while the process is.
func stopEvent(pid int) (*uint16, error) {
	return windows.UTF16PtrFromString(`Local\tether-stop-` + strconv.Itoa(pid))
}

// StopSignals is for a process that StartSession has started: it makes Ctrl+C harmless
// and returns a channel that gets a value when the process is asked to end (Terminate),
// or the person logs off. It is for the whole process and for good.
func StopSignals() <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	signals.Notify(stop, syscall.SIGTERM) // closed console, logging off, shutting down
	signals.Notify(make(chan os.Signal, 1), os.Interrupt)
	name, err := stopEvent(os.Getpid())
	if err != nil {
		return stop
	}
	event, err := windows.CreateEvent(nil, 1, 0, name)
	if event == 0 {
		return stop // then Terminate ends the process
	}
	_ = err     // that it existed already
	go func() { // ends with the process
		if _, err := windows.WaitForSingleObject(event, windows.INFINITE); err == nil {
			select {
			case stop <- syscall.SIGTERM:
			default:
			}
		}
	}()
	return stop
}

// Terminate asks a process to end. One that does not listen (StopSignals) is ended. One
// that has ended is no error.
func Terminate(p *os.Process) error {
	name, err := stopEvent(p.Pid)
	if err != nil {
		return err
	}
	event, err := windows.OpenEvent(windows.EVENT_MODIFY_STATE, false, name)
	if err == nil {
		defer windows.CloseHandle(event)
		return windows.SetEvent(event)
	}
	if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.EINVAL) { // EINVAL: it was waited for
		return fmt.Errorf("end process %d: %w", p.Pid, err)
	}
	return nil
}
