package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/cmd/tether/internal/display"
	"tether/internal/retry"
	"tether/platform/dirs"
	"tether/platform/ipc"
	"tether/platform/secret"
)

// holderVerb is the command that makes this program the holder of one terminal. People
// cannot use it, since it needs what agent/holder.Spawn passes.
const holderVerb = "holder"

// replace asks the running daemon to hand over its terminals, and runs another daemon.
// With force it also replaces one that does not answer. Several replacements at once take
// turns: each ends the daemon that the previous one has started.
func (a *app) replace(c *cobra.Command, f daemonFlags) error {
	client, d, err := a.client()
	if err != nil {
		return err
	}
	if f.replace {
		if _, err := a.newDaemon(d, f); err != nil { // before the running daemon is ended
			return err
		}
		next, err := a.beNext(c.Context(), d)
		if err != nil {
			return err
		}
		f.arrived = sync.OnceFunc(func() { next.Close() })
		defer f.arrived()
		old := agent.Running(d)
		err = a.makeWay(c.Context(), client)
		if f.force && errors.Is(err, context.DeadlineExceeded) {
			err = agent.EndSilent(d)
		}
		if err != nil {
			return stuck(d, err)
		}
		if err := waitEnded(c.Context(), d, old); err != nil {
			return stuck(d, err)
		}
	}
	if !f.background {
		return a.daemon(c.Context(), f)
	}
	return a.startDaemon(c, client, d, f)
}

// answers reports whether a daemon listens.
func answers(ctx context.Context, d dirs.Dirs) bool {
	conn, err := ipc.Dial(ctx, agent.SocketPath(d))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// beNext announces to all commands that another daemon will answer soon, so that they
// wait for it. It waits for replacements that began earlier, at most turnTimeout. The
// caller closes the result.
func (a *app) beNext(ctx context.Context, d dirs.Dirs) (*ipc.Held, error) {
	if err := secret.Dir(d.Runtime); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	defer a.progress(ctx, "waiting for another replacement of the daemon")()
	for {
		next, err := ipc.Lock(filepath.Join(d.Runtime, localapi.NextName))
		other, busy := errors.AsType[*ipc.LockedError](err)
		if !busy {
			return next, err
		}
		if !retry.Wait(ctx, lookAgain) {
			return nil, &hinted{fmt.Errorf("process %d is replacing the daemon and has not finished", other.Pid), "end that process, then try again"}
		}
	}
}

// waitEnded returns when the daemon with the process number pid has ended; 0 means that
// no daemon ran. Another daemon may have started by then.
func waitEnded(ctx context.Context, d dirs.Dirs, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for pid != 0 && agent.Running(d) == pid {
		if !retry.Wait(ctx, lookAgain) {
			return ctx.Err()
		}
	}
	return nil
}

// makeWay ends the running daemon and keeps its terminals running. It returns nil if no
// daemon runs.
func (a *app) makeWay(ctx context.Context, client *localclient.Client) error {
	ctx, cancel := context.WithTimeout(ctx, makeWayTimeout)
	defer cancel()
	done := a.progress(ctx, "waiting for the running daemon to hand over its terminals")
	left, err := client.HandOver(ctx)
	done()
	var remote *localapi.Error
	switch {
	case errors.Is(err, localclient.ErrNotRunning):
		return nil
	case errors.As(err, &remote) && remote.Code == localapi.CodeNotFound:
		return &hinted{errors.New("the running daemon is too old to hand over its terminals"), "tether stop ends the daemon and its terminals"}
	case err != nil:
		return err
	}
	a.notice("%s", display.Kept(left.Kept))
	return nil
}

// startDaemon starts a daemon in the background.
func (a *app) startDaemon(c *cobra.Command, client *localclient.Client, d dirs.Dirs, f daemonFlags) error {
	var args []string
	if f.level != "" {
		args = append(args, "--log-level", f.level)
	}
	return a.start(c.Context(), client, d, f.allowRoot, append(args, settingArgs(f.settings)...)...)
}

// daemonOutput returns the path of the file for a background daemon's output outside its
// log: the reason for a failed start, or a crash.
func daemonOutput(d dirs.Dirs) string { return filepath.Join(d.State, "daemon.out") }

// launch returns how a daemon is started in the background.
func launch(d dirs.Dirs) (localclient.Launch, error) {
	self, err := os.Executable()
	if err != nil {
		return localclient.Launch{}, fmt.Errorf("find this program to start the daemon: %w", err)
	}
	return localclient.Launch{Path: self, Argv: []string{"tether", "daemon"}, Env: os.Environ(), Output: daemonOutput(d)}, nil
}

// startHint returns the remedy for the error that no daemon runs.
func startHint() string {
	if d, err := dirs.Get(); err == nil {
		if ids, _ := agent.LeftRunning(d); len(ids) > 0 { // an error here would only distract
			return display.LeftRunning(len(ids))
		}
	}
	return "start it with: tether daemon --background (tether run and tether pair do so themselves)"
}

const (
	// stopTimeout is how long this program waits for a daemon to end, which takes 9 s at
	// most.
	stopTimeout = 12 * time.Second
	// turnTimeout is how long a replacement waits for replacements that began earlier.
	turnTimeout = time.Minute
	// lookAgain is the time between two checks of a lock that another process holds.
	lookAgain = 10 * time.Millisecond
)

func stopCommand(a *app) *cobra.Command {
	var keep bool
	c := &cobra.Command{
		Use: "stop", Short: "end the daemon and all its terminals", Args: noArgs,
		Long: `end the daemon and all its terminals, including terminals that run without a daemon.
With --keep, the terminals keep running and the next daemon resumes them.`,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), stopTimeout)
			defer cancel()
			return a.stop(ctx, keep)
		},
	}
	c.Flags().BoolVar(&keep, "keep", false, "keep the terminals running")
	return c
}

func (a *app) stop(ctx context.Context, keep bool) error {
	defer a.progress(ctx, "waiting for the daemon to end")()
	client, d, err := a.client()
	if err != nil {
		return err
	}
	if keep {
		left, err := client.HandOver(ctx)
		if err != nil {
			return stuck(d, err)
		}
		a.notice("%s", display.Kept(left.Kept))
		return stuck(d, client.WaitGone(ctx))
	}
	if err := a.stopDaemon(ctx, client); !errors.Is(err, localclient.ErrNotRunning) {
		return stuck(d, err)
	}
	ended, err := agent.EndLeftRunning(ctx, d)
	if text := endedText(ended); text != "" {
		a.notice("no daemon was running; %s", text)
	} else if err == nil && len(ended.Left) == 0 {
		return &hinted{localclient.ErrNotRunning, "there is nothing to stop"}
	}
	a.sayLeft(ended.Left)
	return err
}

// stopDaemon ends the daemon and waits until it has ended. Each request waits a few
// seconds for a daemon that another process may be starting, so that no further request
// is needed once one has found no daemon.
func (a *app) stopDaemon(ctx context.Context, client *localclient.Client) error {
	s, err := client.Status(ctx)
	if errors.Is(err, localclient.ErrNotRunning) {
		return err
	}
	list, _ := client.List(ctx) // if the daemon does not answer, Shutdown reports it
	if err := client.Shutdown(ctx); err != nil {
		return err
	}
	if err := client.WaitGone(ctx); err != nil {
		return err
	}
	if n := s.Terminals.Running; n > 0 {
		a.notice("%s", display.Terminals(n, "was ended", "were ended"))
	}
	a.sayLeft(exitedLeft(list))
	return nil
}

// exitedLeft lists the exited terminals of the person that have left processes running.
// The daemon has ended such processes of agents' terminals.
func exitedLeft(list localapi.TerminalList) []agent.Left {
	var all []agent.Left
	for _, t := range list.Terminals {
		if t.Exit == nil {
			continue
		}
		if n := len(term.Leftover(term.ID(t.ID))); n > 0 {
			all = append(all, agent.Left{Name: t.Name, Processes: n})
		}
	}
	return all
}

// sayLeft reports processes that exited terminals have left running.
func (a *app) sayLeft(all []agent.Left) {
	for _, left := range all {
		if left.Processes == 1 {
			a.notice("1 process of %s is still running", display.Printable(left.Name, 40))
			continue
		}
		a.notice("%d processes of %s are still running", left.Processes, display.Printable(left.Name, 40))
	}
}

// endedText returns a text that lists the processes that were ended without a daemon, and
// what was lost; "" if there were none.
func endedText(e agent.Ended) string {
	var parts []string
	if e.Terminals > 0 {
		parts = append(parts, display.Terminals(e.Terminals, "was still running and was ended", "were still running and were ended"))
	}
	if e.Unread > 0 {
		parts = append(parts, fmt.Sprintf("the last %d bytes of output are lost", e.Unread))
	}
	if e.Agents > 0 {
		parts = append(parts, "leftover processes of "+display.Count(e.Agents, "agent terminal")+" were ended")
	}
	return strings.Join(parts, "; ")
}
