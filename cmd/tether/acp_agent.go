package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tether/agent/acp"
	"tether/platform/proc"
)

const (
	// agentLeaves is how long an agent may take to exit after its editor is gone, and
	// agentGrace after a request to terminate.
	agentLeaves = 5 * time.Second
	agentGrace  = 2 * time.Second
	// agentDrain is how long programs that an exited agent has left may keep its output
	// open.
	agentDrain = 500 * time.Millisecond
)

// agentProcess is a running agent. Its child processes end with it.
type agentProcess struct {
	cmd    *exec.Cmd
	tree   proc.Tree
	stdin  io.WriteCloser
	stdout *os.File
	exited chan struct{}
	err    error // error of the process; set before exited is closed

	kill sync.Once
	dead chan struct{} // closed when the tree was killed
}

// agentEnviron returns env for an agent, without the markers of its parent and without
// the variable that names the person's token file.
func agentEnviron(env []string) []string {
	return slices.DeleteFunc(proc.WithoutTag(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.EqualFold(name, tokenVar)
	})
}

func startAgent(name string, argv []string, confined bool, stderr io.Writer) (*agentProcess, error) {
	p := &agentProcess{cmd: exec.Command(argv[0], argv[1:]...), exited: make(chan struct{}), dead: make(chan struct{})}
	tag := proc.Tag("acp-" + rand.Text())
	p.cmd.Env = append(agentEnviron(os.Environ()), tag, proc.AgentTag(name))
	p.cmd.Stderr = stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, in, err := os.Pipe() // not StdoutPipe, which is closed with output in it when the agent exits
	if err != nil {
		return nil, err
	}
	p.stdout, p.cmd.Stdout = out, in
	err = p.cmd.Start()
	in.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	p.tree.Tag = tag
	if leader, err := proc.Lookup(p.cmd.Process.Pid); err == nil { // otherwise it has exited, and the tag finds its remaining processes
		p.tree.Leader = leader.ID
		if err := recordAgent(leader.Pid, name, confined); err != nil { // not fatal: its environment still identifies it
			fmt.Fprintf(stderr, "tether: %v\n", err)
		}
	}
	go func() { // ends with the agent
		p.err = p.cmd.Wait()
		close(p.exited)
		time.AfterFunc(agentDrain, func() { p.end(0) })
	}()
	return p, nil
}

// end kills the agent and its processes. Only the first call has effect.
func (p *agentProcess) end(grace time.Duration) {
	p.kill.Do(func() {
		defer close(p.dead)
		select {
		case <-p.exited:
			p.tree.Reaped = true
		default:
		}
		_ = p.tree.Kill(context.Background(), grace) // processes that remain are not ours
	})
	<-p.dead
}

// agentInput is the pipe to the agent's standard input. Closing it asks the agent to
// exit; after agentLeaves the agent is killed.
type agentInput struct {
	*agentProcess
	once sync.Once
}

func (i *agentInput) Write(b []byte) (int, error) { return i.stdin.Write(b) }

func (i *agentInput) Close() error {
	i.once.Do(func() {
		time.AfterFunc(agentLeaves, func() { i.end(agentGrace) })
	})
	return i.stdin.Close()
}

// serveAgent runs the agent until it has exited or the editor is gone.
func (a *app) serveAgent(ctx context.Context, o acp.Options, name string, argv []string, confined bool) error {
	agent, err := startAgent(name, argv, confined, a.stderr)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { agent.end(agentGrace) }) // this process was told to end: do not wait
	defer stop()
	broke := acp.New(o).Run(ctx, acp.Pipe{In: a.stdin, Out: a.stdoutFile}, acp.Pipe{In: agent.stdout, Out: &agentInput{agentProcess: agent}})
	select {
	case <-agent.exited:
	case <-time.After(agentLeaves):
	}
	agent.end(agentGrace)
	<-agent.exited
	agent.stdout.Close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(broke, programStatus(agent.err))
}

// programStatus returns the error with which a program ended as the exit status of this
// command.
func programStatus(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return exitCode(128 + int(s.Signal()))
	}
	return exitCode(exit.ExitCode())
}
