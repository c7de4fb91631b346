package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"tether/events"
)

func onCommand(a *app) *cobra.Command {
	f := eventFlags{follow: true}
	once := false
	c := &cobra.Command{
		Use: "on ID [flags] -- CMD…", Short: "run a command whenever something happens in a terminal", Args: someArgs(2, -1, "the id or name of a terminal, and a command after --"),
		Long: `run a command whenever something happens in a terminal, until interrupted.

The command runs here, in the foreground, one at a time, with your rights; an agent may
run what the policy allows it without a question. The event is JSON on its standard input,
never in its arguments: text that programs print is not a part of a command line. What
happens while it runs is gathered, and the next event has a count.`,
		Example: `  tether on web --pattern 'EADDRINUSE' -- notify-send "the port is taken"
  tether on build --exit --once -- sh -c 'jq -r .data.exitCode'`,
		RunE: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 1 {
				return usage(c, "give one terminal, then -- and the command")
			}
			subs, err := f.subscriptions(c, args[:1])
			if err != nil {
				return err
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			if err := client.MayRun(c.Context(), args[1:], dir); err != nil {
				return err
			}
			l := &listener{app: a, client: client, flags: &f, subs: subs}
			return l.run(c.Context(), func(ev *events.Event) error {
				err := a.react(c, ev, args[1:])
				if once && err == nil {
					return errDone
				}
				return err
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&once, "once", false, "end after the first event, with the command's exit status")
	c.Flags().StringVar((*string)(&f.cursors), "cursor-file", "", "go on where the last run with this `FILE` ended")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := run(c, args); !errors.Is(err, errDone) {
			return err
		}
		return nil
	}
	return c
}

// errDone is returned when the command waits for no more events.
var errDone = errors.New("done")

// react runs a command with an event on its standard input. If a command fails, that is
// reported, and the next event starts it again.
func (a *app) react(c *cobra.Command, ev *events.Event, argv []string) error {
	data, err := json.Marshal(ev)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(c.Context(), argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(data, '\n')), a.stdoutFile, a.stderr
	err = cmd.Run()
	var failed *exec.ExitError
	once, _ := c.Flags().GetBool("once")
	switch {
	case errors.As(err, &failed) && once:
		return exitCode(failed.ExitCode())
	case errors.As(err, &failed):
		a.notice("%s ended with status %d", argv[0], failed.ExitCode())
		return nil
	}
	return err
}
