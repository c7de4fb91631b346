package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/config"
	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/installer"
	"tether/platform/tty"
)

// bare runs tether without a command. At a terminal it shows a short status or, if
// nothing is set up, offers the steps that make sense now. Without a terminal it prints
// the help.
func (a *app) bare(c *cobra.Command) error {
	if !tty.Is(a.stdin) || !tty.Is(a.stdoutFile) {
		return c.Help()
	}
	g, err := a.look(c.Context())
	if err != nil {
		return err
	}
	if g.setUp() {
		a.printShort(g)
		return nil
	}
	fmt.Fprintln(a.stdout, "tether lends terminals of this machine to remote agent hosts. Nothing is set up here yet.")
	for {
		key, err := a.offer(c.Context(), g)
		if err != nil || key == nil {
			return err
		}
		if err := key.do(a, c.Context()); err != nil {
			if c.Context().Err() != nil || errors.Is(err, context.Canceled) {
				return err
			}
			a.explain(c.Context(), err)
		}
		if g, err = a.look(c.Context()); err != nil {
			return err
		}
	}
}

// glance is the state that tether without a command examines.
type glance struct {
	status     localapi.Status // the zero value without a daemon
	running    bool            // a daemon runs
	paired     []string        // names of the paired hosts
	configured bool            // there is a configuration file
	installed  bool            // the service is installed, or cannot be offered
	demo       bool            // tether-host was found, so that the demo can be offered
	agents     bool            // an agent is installed that does not know tether
}

func (g *glance) setUp() bool {
	return len(g.paired) > 0 || g.configured || g.status.Terminals.Running+g.status.Terminals.Exited > 0
}

// look returns the state, from the daemon, if one runs, and from files.
func (a *app) look(ctx context.Context) (*glance, error) {
	client, d, err := a.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	g := &glance{}
	asked, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	g.status, err = client.Status(asked)
	switch {
	case err == nil:
		g.running = true
		for _, h := range g.status.Hosts {
			g.paired = append(g.paired, h.Name)
		}
	case errors.Is(err, localclient.ErrNotRunning):
		if g.paired, err = hosts.Names(d); err != nil {
			return nil, err
		}
	default:
		return nil, stuck(d, err)
	}
	_, missing := os.Stat(config.Path(d))
	g.configured = missing == nil
	g.installed = installed(asked)
	self, err := os.Executable()
	if err == nil {
		_, err = hostProgram(self)
	}
	g.demo = err == nil
	_, lack, _ := agentsHere()
	g.agents = len(lack) > 0
	return g, nil
}

// serviceTimeout is how long the service manager may take to answer a person who waits.
const serviceTimeout = 300 * time.Millisecond

// serviceStatus asks the service manager. Tests replace it.
var serviceStatus = func(ctx context.Context) (installer.Status, error) { return installer.New(false).Status(ctx) }

// installed reports whether the service is installed. It also returns true if the service
// cannot be offered, because there is no service manager or it does not answer in time.
func installed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	answer := make(chan bool, 1) // one slot, since the answer may come when nobody waits any more
	go func() {
		service, err := serviceStatus(ctx)
		answer <- err != nil || service.Installed
	}()
	select {
	case yes := <-answer:
		return yes
	case <-ctx.Done():
		return true
	}
}

// hostProgram finds tether-host: next to this program, or in the PATH.
func hostProgram(self string) (string, error) {
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), "tether-host")); err == nil {
		return path, nil
	}
	return exec.LookPath("tether-host")
}

// startStep is something that a person can do next.
type startStep struct {
	key  rune
	text string
	when func(*glance) bool
	do   func(*app, context.Context) error
}

// startSteps are the offered steps, in a sensible order.
var startSteps = []startStep{
	{'p', "pair with a host by its URL", func(g *glance) bool { return len(g.paired) == 0 }, (*app).stepPair},
	{'d', "run a demo on this machine; it leaves nothing behind", func(g *glance) bool { return len(g.paired) == 0 && g.demo },
		func(a *app, ctx context.Context) error { return a.command(ctx, "demo") }},
	{'s', "start a shell in a private terminal", func(g *glance) bool { return len(g.paired) == 0 }, func(a *app, ctx context.Context) error {
		if err := a.command(ctx, "shell", "--private"); err != nil {
			return err
		}
		a.notice("the shell ran in a terminal of the daemon. Such terminals keep running after you detach (~.): tether ls, tether attach, tether read")
		return nil
	}},
	{'s', "start a shell shared with the host", func(g *glance) bool { return len(g.paired) > 0 }, func(a *app, ctx context.Context) error {
		if err := a.command(ctx, "shell"); err != nil {
			return err
		}
		a.notice("people at the host could watch this shell, but not type. To share another command: tether run -- CMD")
		return nil
	}},
	{'a', "configure installed agents to use tether; shows each change first", func(g *glance) bool { return g.agents },
		func(a *app, ctx context.Context) error { return a.command(ctx, "setup", "agents") }},
	{'l', "start the daemon at login", func(g *glance) bool { return len(g.paired) > 0 && !g.installed },
		func(a *app, ctx context.Context) error { return a.command(ctx, "service", "install") }},
	{'h', "show all commands", func(*glance) bool { return true }, func(a *app, ctx context.Context) error { return a.command(ctx, "--help") }},
}

// offer shows the steps that make sense, and returns the chosen one, or nil if the person
// wants to end.
func (a *app) offer(ctx context.Context, g *glance) (*startStep, error) {
	fmt.Fprintln(a.stdout)
	keys := "q"
	for _, s := range startSteps {
		if s.when(g) {
			fmt.Fprintf(a.stdout, "  %c  %s\n", s.key, s.text)
			keys += string(s.key)
		}
	}
	fmt.Fprint(a.stdout, "  q  quit\n\npress a key: ")
	key, err := a.key(ctx, keys)
	if err != nil {
		fmt.Fprintln(a.stdout)
		return nil, err
	}
	fmt.Fprintf(a.stdout, "%c\n\n", key)
	for _, s := range startSteps {
		if s.key == key && s.when(g) {
			return &s, nil
		}
	}
	return nil, nil
}

// stepPair asks for the URL and pairs.
func (a *app) stepPair(ctx context.Context) error {
	fmt.Fprint(a.stdout, "the host's URL, such as wss://host.example (empty: cancel): ")
	url, err := readLine(ctx, a.stdin)
	if url = strings.TrimSpace(url); err != nil || url == "" {
		return err
	}
	return a.command(ctx, "pair", url)
}

// command runs a command of this program, which reports its own errors.
func (a *app) command(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	err = a.runShown(ctx, self, args, args)
	if _, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return nil
	}
	return err
}

// runShown runs a command of the program self as the person would, and shows the command
// line, so that the person knows it the next time.
func (a *app) runShown(ctx context.Context, self string, shown, args []string) error {
	fmt.Fprintln(a.stdout, display.Dim(a.stdoutFile, "$ tether "+display.ShellLine(shown)))
	c := exec.CommandContext(ctx, self, args...)
	c.Stdin, c.Stdout, c.Stderr = a.stdin, a.stdoutFile, a.stderr
	c.WaitDelay = demoWithin
	c.Cancel = func() error { // the command may have to restore the person's terminal
		if c.Process.Signal(syscall.SIGTERM) != nil {
			return c.Process.Kill() // on systems without signals
		}
		return nil
	}
	return c.Run()
}

// printShort prints the status in a few lines, with the next step.
func (a *app) printShort(g *glance) {
	line := func(title, format string, args ...any) {
		fmt.Fprintf(a.stdout, "%-10s %s\n", title, fmt.Sprintf(format, args...))
	}
	s := g.status
	if g.running {
		line("daemon", "running for %s", display.Ago(time.Since(s.Started)))
		line("terminals", "%d running, %d exited: tether ls", s.Terminals.Running, s.Terminals.Exited)
	} else {
		line("daemon", "not running; commands that need it start it")
	}
	for _, h := range s.Hosts {
		name := display.Printable(h.Name, 0)
		if h.Default {
			name += " (default)"
		}
		line("host", "%s: %s for %s", name, h.State, display.Ago(time.Since(h.Since)))
	}
	if !g.running && len(g.paired) > 0 {
		line("hosts", "%s", display.Printable(strings.Join(g.paired, ", "), 0))
	}
	if len(g.paired) == 0 {
		line("hosts", "none: tether pair URL")
	}
	if g.agents {
		line("agents", "some do not use tether yet: tether setup agents")
	}
	if s.Waiting > 0 {
		line("approvals", "%d pending: tether approvals", s.Waiting)
	}
	if len(s.Degraded) > 0 {
		line("problems", "%d: tether doctor", len(s.Degraded))
	}
	line("next", "tether run -- CMD · tether shell · tether ui · tether status · tether --help")
}
