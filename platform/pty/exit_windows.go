package pty

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/windows"
)

// unknownCode is the status of a program that could not be asked for it.
const unknownCode = -1

// killedCode is the status of programs that Kill has ended: the one that a shell reports
// for SIGKILL, so that it is the same everywhere.
const killedCode = 137

// hungUpCode is the status of programs that have nothing to say when their console is
// closed: STATUS_CONTROL_C_EXIT of <winnt.h>.
const hungUpCode = 0xc000013a

// watch waits for the program, and then, where Windows does not do it, ends the console.
// It ends with that, or after Close with the program.
func (p *PTY) watch(process windows.Handle, released bool) {
	p.exit = p.wait(process)
	_ = windows.CloseHandle(process)
	close(p.exited)
	if !released && p.deserted() && p.quiet() {
		p.console.close()
	}
}

func (p *PTY) wait(process windows.Handle) Exit {
	var code uint32
	_, err := windows.WaitForSingleObject(process, windows.INFINITE)
	if err == nil {
		err = windows.GetExitCodeProcess(process, &code)
	}
	switch {
	case err != nil:
		return Exit{Code: unknownCode}
	case code == killedCode && p.killed.Load():
		return Exit{Code: killedCode, Signal: "SIGKILL"}
	case code == hungUpCode && p.console.isGone():
		return Exit{Code: hungUpCode, Signal: "SIGHUP"}
	}
	return Exit{Code: int(code)} // all 32 bits, unsigned
}

// Looks at the remaining processes after the program has ended.
const (
	lookFirst = time.Millisecond
	lookLast  = 250 * time.Millisecond
	// quietTime is how long nothing must have come before the console is ended: three
	// frames of the console host's painting, which Server 2019 does not finish when it is
	// told to end (oven-sh/bun #34689).
	quietTime = 50 * time.Millisecond
	quietLook = 10 * time.Millisecond
)

// deserted waits until no process is left in the job; false means Close came first.
// Remaining processes may still print.
func (p *PTY) deserted() bool {
	for pause := lookFirst; ; pause = min(2*pause, lookLast) {
		if empty, err := p.job.Empty(); empty || err != nil {
			return true
		}
		if !p.pause(pause) {
			return false
		}
	}
}

// quiet waits until all output was read and none has come for a while; false means Close
// came first.
func (p *PTY) quiet() bool {
	came := p.reader.came.Load()
	for since := time.Now(); time.Since(since) < quietTime; {
		if !p.pause(quietLook) {
			return false
		}
		if now := p.reader.came.Load(); now != came || p.reader.available() > 0 {
			came, since = now, time.Now()
		}
	}
	return true
}

func (p *PTY) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.closed:
		return false
	}
}

// Wait blocks until the program itself has ended and returns how; output may still
// arrive, from the console or from background processes. Any number of goroutines may
// wait, also after Close.
func (p *PTY) Wait() Exit {
	<-p.exited
	return p.exit
}

// Exited is closed when Wait would not block.
func (p *PTY) Exited() <-chan struct{} { return p.exited }

// Kill ends the program and everything that it has started. It asks by ending the
// console, so that each program on it gets CTRL_CLOSE_EVENT, waits up to grace for all to
// end, and ends the rest; without grace it does not ask. Cancelling ctx ends the grace
// early. It returns when nothing is left; an error names the processes that could not be
// ended. Output written before remains readable.
func (p *PTY) Kill(ctx context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if grace > 0 {
		go p.console.close()
	}
	if !p.job.Wait(ctx) {
		p.killed.Store(true)
		if err := p.job.Kill(killedCode); err != nil {
			return fmt.Errorf("kill terminal's processes: %w", err)
		}
	}
	<-p.exited
	return nil
}

// leftLook is how often WaitLeft looks.
const leftLook = 250 * time.Millisecond

// Left reports whether a process is in the terminal's job, also after Close.
func (p *PTY) Left() bool {
	empty, err := p.job.Empty()
	return !empty && err == nil
}

// WaitLeft waits until Left is false.
func (p *PTY) WaitLeft() {
	tick := time.NewTicker(leftLook)
	defer tick.Stop()
	for p.Left() {
		<-tick.C
	}
}

// interruptKey is Ctrl+C.
const interruptKey = "\x03"

// Signal is the closest to a signal that Windows has, by its name with or without SIG:
// INT types Ctrl+C, HUP and TERM end the console, which asks every program on it to end,
// and KILL ends them all at once. There are no others. It returns ErrExited once the
// program has ended.
func (p *PTY) Signal(name string) error {
	select {
	case <-p.exited:
		return ErrExited
	default:
	}
	switch strings.TrimPrefix(strings.ToUpper(name), "SIG") {
	case "INT":
		_, err := p.Write([]byte(interruptKey))
		return err
	case "HUP", "TERM":
		go p.console.close() // it may wait for the reader
		return nil
	case "KILL":
		return p.Kill(context.Background(), 0)
	}
	return fmt.Errorf("cannot send signal %q on Windows: %w", name, errNoSignal)
}

var errNoSignal = errors.New("only INT, TERM, HUP and KILL are supported")
