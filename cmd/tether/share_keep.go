package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"tether/platform/proc"
)

const (
	// keeperVerb makes this program the keeper of another one: it ends that program, and
	// removes a directory, when its standard input ends. The other end of that pipe is in
	// the command that has started the keeper, so that this also works if that command is
	// killed.
	keeperVerb = "keeper"
	// keptGrace is how long a program may take to end in order.
	keptGrace = 2 * time.Second
	// keeperWithin is how long the command waits for a keeper.
	keeperWithin = 15 * time.Second
)

// keep is the keeper. args are the directory to remove, or "", then the program's path
// and its arguments.
func keep(args []string) int {
	// A person's Ctrl-C and the end of their terminal reach the keeper, too. It waits for
	// the command, which ends the pipe.
	ending := proc.StopSignals()
	if len(args) < 2 {
		return 2
	}
	if args[0] != "" {
		defer removeSoon(args[0])
	}
	c := exec.Command(args[1], args[2:]...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	leader, err := proc.Lookup(c.Process.Pid)
	if err != nil {
		leader.Pid = c.Process.Pid // it has ended already
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, os.Stdin) // nothing is written to it; an error is an end, too
	}()
	select {
	case err = <-ended:
		if err != nil {
			return 1
		}
		return 0
	case <-closed:
	case <-ending:
	}
	if err := (proc.Tree{Leader: leader.ID}).Kill(context.Background(), keptGrace); err != nil {
		_ = c.Process.Kill() // fails if it has ended
	}
	<-ended
	return 0
}

// removeSoon removes a directory. On Windows programs that have ended hold files for a
// while.
func removeSoon(dir string) {
	for range 100 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// kept is a program with its keeper. Reading from it yields the output of both.
type kept struct {
	*os.File
	keeper *exec.Cmd
	alive  io.Closer // the pipe
	close  func() error
}

// startKept starts a program that ends with ctx, with Close and with this process. Its
// directory remove is removed afterwards, unless it is "".
func startKept(ctx context.Context, env []string, remove, program string, args []string) (io.ReadCloser, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	k := &kept{File: out, keeper: exec.Command(self, append([]string{keeperVerb, remove, path}, args...)...)}
	k.keeper.Stdout, k.keeper.Stderr, k.keeper.Env = in, in, env
	if k.alive, err = k.keeper.StdinPipe(); err == nil {
		err = k.keeper.Start()
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	k.close = sync.OnceValue(k.end)
	context.AfterFunc(ctx, func() { k.alive.Close() })
	return k, nil
}

// Close ends the program, and waits for the end of its keeper.
func (k *kept) Close() error { return k.close() }

func (k *kept) end() error {
	k.alive.Close()
	late := time.AfterFunc(keeperWithin, func() { _ = k.keeper.Process.Kill() }) // fails if it has ended
	defer late.Stop()
	err := k.keeper.Wait()
	if _, status := errors.AsType[*exec.ExitError](err); status {
		err = nil
	}
	return errors.Join(err, k.File.Close())
}
