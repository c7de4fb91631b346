package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A wall has two helpers:
//
//	holder ── outer helper ── inner helper (process 1 of the new namespaces) ── command ── …
//
// The outer helper manages the agent's private directory and returns the command's exit
// status. The inner helper builds the file system, drops all rights and starts the
// command. When the command ends, the inner helper ends, and then the kernel ends all
// processes that are left in the namespaces. If the outer helper ends, the kernel kills
// the inner helper.

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Descriptors of the inner helper.
const (
	statusFD = 3 // to which it writes the wait status of the command
	orderFD  = 4 // from which it reads its order
)

// outer runs the command behind a wall and returns its exit status. If a signal has ended
// the command, outer ends this process by the same signal, or returns 128 plus its number
// for signals at which Go would print its stacks.
func outer(p Profile, argv []string) int {
	// The command must not get descriptors that the helper has inherited.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return complain(statusConfine, fmt.Errorf("close_range: %w", err))
	}
	runtime.LockOSThread() // the kernel kills the inner helper when the thread that started it ends
	kept, err := occupy(p.Private)
	if err != nil {
		return complain(statusConfine, err)
	}
	defer kept.leave()
	status, err := kept.run(p, argv)
	if err != nil {
		return complain(statusConfine, err)
	}
	if !status.Signaled() {
		return status.ExitStatus()
	}
	switch sig := status.Signal(); sig {
	case unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGKILL: // other signals make Go print its stacks
		kept.leave()
		signal.Reset()
		_ = unix.Kill(os.Getpid(), sig)
		runtime.Gosched()
		return 128 + int(sig)
	default:
		return 128 + int(sig)
	}
}

// order is the outer helper's message to the inner one.
type order struct {
	Profile
	Caches []string
	Layers string // directory for changes of caches; "" makes caches read-only
}

// run starts the inner helper and waits for it. It returns the status of the command, or
// the status of the inner helper if that ended without reporting one.
func (k *kept) run(p Profile, argv []string) (syscall.WaitStatus, error) {
	o := order{Profile: p, Caches: Caches(p.Home), Layers: k.layers}
	o.Readable = slices.Concat(p.Readable, Toolchains(p.Home))
	o.Hidden = p.hidden()
	if self, err := os.Executable(); err == nil && !underAny(self, systemDirs) {
		o.Readable = append(o.Readable, self) // so that the command can run tether mcp
	}
	if err := o.hideSockets(); err != nil {
		return 0, err
	}
	orders, orderW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer orders.Close()
	defer orderW.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	c := exec.Command("/proc/self/exe")
	c.Args = append([]string{"tether", Verb, verbInit}, argv...)
	c.Stdin, c.Stdout, c.Stderr, c.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, []*os.File{w, orders}
	flags := namespaces
	if p.NoNetwork {
		flags |= unix.CLONE_NEWNET
	}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  uintptr(flags),
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		// An overlay file system needs CAP_DAC_OVERRIDE of the one who mounts it, because
		// it gives its work directory the mode 0. Over files of others the capability has
		// no power: only this user is mapped.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE},
		Pdeathsig:   unix.SIGKILL,
	}
	front := foreground()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOn()...)
	if err := c.Start(); err != nil {
		w.Close()
		return 0, fmt.Errorf("cannot create user namespaces: %w", err)
	}
	w.Close()
	orders.Close()
	err = json.NewEncoder(orderW).Encode(o)
	orderW.Close()
	if err != nil {
		return 0, errors.Join(err, c.Process.Kill(), c.Wait())
	}
	go func() {
		for s := range signals {
			_ = c.Process.Signal(s)
		}
	}()
	var said [4]byte
	n, _ := r.Read(said[:])
	_ = c.Wait() // the status comes from said or c.ProcessState
	takeForeground(front)
	if n == len(said) {
		return syscall.WaitStatus(uint32(said[0]) | uint32(said[1])<<8 | uint32(said[2])<<16 | uint32(said[3])<<24), nil
	}
	return c.ProcessState.Sys().(syscall.WaitStatus), nil
}

// passedOn returns the signals that both helpers pass to the command. With a terminal
// that is only SIGHUP: the terminal sends the other signals to its foreground processes,
// so that they reach the command anyway.
func passedOn() []os.Signal {
	if terminal() {
		return []os.Signal{unix.SIGHUP}
	}
	return []os.Signal{unix.SIGHUP, unix.SIGTERM, unix.SIGINT, unix.SIGQUIT}
}

// terminal reports whether standard input is the controlling terminal.
func terminal() bool { return foreground() > 0 }

// foreground returns the terminal's foreground process group. It returns 1 if that group
// is not visible in this namespace, and -1 if standard input is not the controlling
// terminal.
func foreground() int {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return max(group, 1)
}

// takeForeground makes this process's group the terminal's foreground group again if it
// was the foreground group before.
func takeForeground(was int) {
	if group := unix.Getpgrp(); was == group {
		signal.Ignore(unix.SIGTTOU)
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group)
	}
}

// inner is the inner helper. It returns the exit status of its process; the command's
// status goes to statusFD.
func inner(argv []string) int {
	var in order
	orders := os.NewFile(orderFD, "order")
	err := json.NewDecoder(orders).Decode(&in)
	orders.Close()
	if err != nil {
		return complain(statusConfine, err)
	}
	dir, err := unix.Getwd() // os.Getwd may return a path with links
	if err != nil {
		return complain(statusConfine, err)
	}
	unix.CloseOnExec(statusFD)
	// No process in the namespaces may inspect this process, which has rights in them.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return complain(statusConfine, err)
	}
	if err := build(in); err != nil {
		return complain(statusConfine, err)
	}
	if in.NoNetwork {
		if err := loopback(); err != nil {
			return complain(statusConfine, fmt.Errorf("the loopback interface: %w", err))
		}
	}
	if err := os.Chdir(dir); err != nil {
		return complain(statusConfine, fmt.Errorf("the working directory is not granted: %w", err))
	}
	os.Unsetenv("TMPDIR")
	for _, name := range socketVars {
		if !grantsSocket(in.Profile, os.Getenv(name)) {
			os.Unsetenv(name)
		}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return notStarted(argv[0], err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOn()...)
	pid, err := start(path, argv)
	if err != nil {
		return notStarted(argv[0], err)
	}
	go func() {
		for s := range signals {
			_ = unix.Kill(pid, s.(syscall.Signal))
		}
	}()
	status := reap(pid)
	_, _ = unix.Write(statusFD, []byte{byte(status), byte(status >> 8), byte(status >> 16), byte(status >> 24)})
	return 0
}

// start drops the rights of the calling thread and starts the command from it. The
// goroutine stays locked to that thread.
func start(path string, argv []string) (pid int, err error) {
	runtime.LockOSThread()
	if err := dropCapabilities(); err != nil {
		return 0, err
	}
	if err := scope(); err != nil {
		return 0, err
	}
	if err := refuseSyscalls(); err != nil {
		return 0, err
	}
	// The command gets its own process group, because kill(0, …) reaches the members of
	// the caller's group in all namespaces.
	attr := &syscall.SysProcAttr{Setsid: true}
	if terminal() {
		attr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	}
	return syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: attr})
}

// reap waits for all children, as process 1 must, until the command has ended. It returns
// the command's status.
func reap(command int) unix.WaitStatus {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return statusConfine << 8
		case pid == command && status.Stopped(): // by ^Z, and there is no shell that would continue it
			_ = unix.Kill(-command, unix.SIGCONT)
		case pid == command:
			return status
		}
	}
}

func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // an older kernel has fewer
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	return nil
}

// loopback switches on the loopback interface, the only one of a new network namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// grantsSocket reports whether the value of a variable names a socket of the profile.
func grantsSocket(p Profile, value string) bool {
	return slices.ContainsFunc(p.Sockets, func(s string) bool {
		return value == s || value == "unix:path="+s || value == "unix://"+s
	})
}
