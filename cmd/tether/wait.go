package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

func waitCommand(a *app) *cobra.Command {
	var o localclient.WaitOptions
	var exit, asJSON bool
	c := &cobra.Command{
		Use: "wait ID", Short: "wait for output, a port, the end of a command or the exit of a terminal", Args: someArgs(1, 1, "the id or name of a terminal"),
		Long: `wait until one of the given conditions holds: a line of the output matches, there was
no output for a while, the shell has finished its command, a port is open, a URL of this
machine answers with 2xx, or the terminal has exited. Without conditions, wait waits for
the exit. Earlier output counts too, as far as it is kept; with --new it does not.

A complete line counts at once. A line that may still change, such as a status line, a
prompt, or any line of a program that moves the cursor, counts after it has not changed
for 200 ms (--settle).

The exit status is 0 when a condition holds; with --exit or --command, it is the status
of the terminal or command. It is 1 if the terminal exited before a condition held, and
8 after --timeout.`,
		Example: `  tether wait web --pattern 'ready in \d+' --timeout 30s && open http://localhost:3000
  tether wait web --url http://localhost:3000/health --timeout 1m
  tether wait build --exit
  tether wait shell --command && tether read --tail 20 shell`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkWait(c, &o); err != nil {
				return err
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			client = client.Patient(silence(a.notice))
			w, err := client.Wait(c.Context(), args[0], o)
			if err != nil {
				return about(args[0], err)
			}
			if asJSON {
				err = a.printJSON(w)
			} else {
				fmt.Fprintln(a.stdout, display.Waited(w))
			}
			return errors.Join(err, waitStatus(args[0], w, exit || !asked(&o)))
		},
	}
	f := c.Flags()
	f.StringVar(&o.Pattern, "pattern", "", "until a line matches this `REGEXP` (RE2); (?i) ignores case")
	f.DurationVar(&o.Idle, "idle", 0, "until there was no output for this `TIME`, such as 2s")
	f.BoolVar(&o.Command, "command", false, "until the shell runs no command")
	f.BoolVar(&o.Verified, "verified", false, "with --command: ignore commands of foreign shell integrations")
	f.IntVar(&o.Port, "port", 0, "until this TCP `PORT` of this machine is open")
	f.StringVar(&o.URL, "url", "", "until this http or https `URL` of localhost answers with 2xx")
	f.DurationVar(&o.Settle, "settle", defaultSettle, "with --pattern: how long an incomplete line must not change; 0 accepts any line")
	f.BoolVar(&exit, "exit", false, "until the terminal has exited")
	f.BoolVar(&o.New, "new", false, "ignore earlier output")
	f.DurationVar(&o.Timeout, "timeout", 0, "give up after this `TIME`")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// defaultSettle is the default of the daemon.
const defaultSettle = 200 * time.Millisecond

// asked reports whether the command waits for anything besides the exit.
func asked(o *localclient.WaitOptions) bool {
	return o.Pattern != "" || o.Idle > 0 || o.Command || o.Port != 0 || o.URL != ""
}

func checkWait(c *cobra.Command, o *localclient.WaitOptions) error {
	for name, d := range map[string]time.Duration{"idle": o.Idle, "timeout": o.Timeout} {
		if c.Flags().Changed(name) && d <= 0 {
			return usage(c, "--%s must be more than 0, such as 2s", name)
		}
	}
	if o.Settle < 0 {
		return usage(c, "--settle must not be negative; for example: 500ms")
	}
	if o.Settle == 0 {
		o.Settle = -1 // no settle time; 0 would mean the daemon's default
	}
	if o.Verified && !o.Command {
		return usage(c, "--verified needs --command")
	}
	if c.Flags().Changed("port") && (o.Port < 1 || o.Port > 65535) {
		return usage(c, "--port must be 1 to 65535")
	}
	return nil
}

// waitStatus returns the exit status. forExit says that the command waited for the exit.
func waitStatus(ref string, w localapi.Waited, forExit bool) error {
	switch {
	case w.Reason == "timeout":
		return exitCode(localapi.ExitTimeout)
	case w.Reason == "exit" && !forExit:
		return about(ref, errors.New("the terminal exited first"))
	case w.Reason == "exit" && w.Exit != nil && w.Exit.Code != 0:
		return exitCode(w.Exit.Code)
	case w.Reason == "command" && w.Command != nil && w.Command.Exit != nil && *w.Command.Exit != 0:
		return exitCode(*w.Command.Exit)
	}
	return nil
}
