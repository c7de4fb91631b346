package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/attach"
	"tether/cmd/tether/internal/display"
	"tether/platform/proc"
	"tether/platform/tty"
)

// attachTo attaches to the terminal, with the options that are not the same for all
// commands, and returns when the session is over: nil after a detach, else an exitCode or
// the error.
func (a *app) attachTo(ctx context.Context, client *localclient.Client, id string, from localclient.AttachOptions, o attach.Options) error {
	o.ID, o.In, o.Out, o.Err, o.Notice, o.Size, o.TellLent = id, a.stdin, a.stdoutFile, a.stderr, a.notice, a.size, wantsLent
	s := attach.New(o)
	client, stop := staying(ctx, client, func(format string, args ...any) { s.Notice(format+"\r", args...) }, nil)
	defer stop()
	if err := s.Open(ctx, client, from); err != nil {
		return &cannotAttach{err}
	}
	err := s.Run()
	if status, ok := errors.AsType[attach.Status](err); ok {
		return exitCode(status)
	}
	if gone, ok := errors.AsType[*localclient.GoneError](err); ok {
		return &hinted{err, "start a daemon and attach again: tether daemon --background; tether attach " + gone.ID}
	}
	return err
}

// replay is the amount of earlier output that an attach shows, in bytes.
const replay = 64 << 10

func attachCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "attach ID", Short: "connect to a terminal: see its output and type into it", Args: someArgs(1, 1, "the id or name of a terminal"),
		Long: `connect to a terminal: see its latest output, follow it and type into it.

At the start of a line, ~. detaches and ~? shows help. With several people attached,
the terminal takes the size of the smallest window. The exit status is 0 after a
detach, otherwise the command's own; 254 if the daemon ended the connection, 255 if
the attach failed.`,
		Example: "  tether attach web",
		RunE: func(c *cobra.Command, args []string) error {
			client, _, err := a.client()
			if err != nil {
				return &cannotAttach{err}
			}
			client = client.Patient(silence(a.notice))
			t, err := client.Find(c.Context(), args[0])
			if err != nil {
				return &cannotAttach{about(args[0], err)}
			}
			if err := a.showsItself(t); err != nil {
				return &cannotAttach{err}
			}
			return a.attachTo(c.Context(), client, t.ID, localclient.AttachOptions{Tail: replay, Screen: true}, attach.Options{})
		},
	}
}

// showsItself returns an error if this command prints into the pane that the terminal
// reads: what it prints would be printed again, without end.
func (a *app) showsItself(t localapi.Terminal) error {
	if t.Adopted == nil || t.Adopted.Pid == 0 || !tty.Is(a.stdoutFile) {
		return nil
	}
	for _, p := range proc.Lineage(os.Getpid()) {
		if p.Pid == t.Adopted.Pid {
			return &hinted{fmt.Errorf("%s is the pane in which this command runs: it would show its own output, without end", display.NameOf(t)), "run it in another window"}
		}
	}
	return nil
}
