package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/events"
	"tether/platform/proc"
	"tether/platform/tty"
)

// eventFlags say which events the person wants.
type eventFlags struct {
	patterns                         []string
	exit, failed, commands           bool
	problems, awaiting, ready, ports bool
	verdict                          bool
	idle                             time.Duration
	follow, asJSON, raw              bool
	cursors                          events.CursorFile
}

func (f *eventFlags) add(c *cobra.Command) {
	s := c.Flags()
	s.StringArrayVar(&f.patterns, "pattern", nil, "a line matches this `REGEXP` (RE2); (?i) ignores case; may be repeated")
	s.BoolVar(&f.exit, "exit", false, "the terminal has exited")
	s.BoolVar(&f.commands, "command", false, "a command of the shell has finished")
	s.BoolVar(&f.failed, "failed", false, "with --exit and --command: only what has failed; alone: both")
	s.DurationVar(&f.idle, "idle", 0, "it has printed something, then nothing for this `TIME`, such as 5s")
	s.BoolVar(&f.problems, "problems", false, "what compilers and tests complain about has changed")
	s.BoolVar(&f.awaiting, "awaiting", false, "the program waits for input")
	s.BoolVar(&f.ready, "ready", false, "a declared terminal has become ready, or failed to")
	s.BoolVar(&f.ports, "ports", false, "a TCP port was opened or closed")
	s.BoolVar(&f.verdict, "verdict", false, "what was good fails now, or what failed is good")
	s.BoolVar(&f.raw, "raw", false, "do not mask secrets")
}

func eventsCommand(a *app) *cobra.Command {
	var f eventFlags
	most := 0
	c := &cobra.Command{
		Use: "events [ID…]", Short: "print what happens in terminals, a line per event", Args: someArgs(0, 16, "ids or names of terminals"),
		Long: `print what happens in the given terminals, or in all but the one in which it prints,
a line per event: matching lines, exits, finished commands, problems, programs that wait
for input.

Without conditions, these are exits, failed commands, problems, and programs that wait
for input. Without --follow, events prints what has happened as far as the log has it,
and ends; with --follow it prints what happens from now on. --cursor-file remembers how
far it came: the next run goes on there, and says so if something is missing.

A line has at most 400 characters. A flood of matches becomes one line a second with a
count, and secrets are masked. Agents that watch a background command wake at each line.`,
		Example: `  tether events --follow
  tether events web --pattern '(?i)error' --follow
  tether events build --exit --json`,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("count") && most < 1 {
				return usage(c, "--count must be 1 or more")
			}
			subs, err := f.subscriptions(c, args)
			if err != nil {
				return err
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			l := &listener{app: a, client: client, flags: &f, subs: subs}
			own := ""
			if len(args) == 0 && tty.Is(a.stdoutFile) {
				own = os.Getenv(proc.TagVar)
			}
			err = l.run(c.Context(), func(ev *events.Event) error {
				if own != "" && ev.Data["terminalId"] == own {
					return nil // the printed line would be the next event
				}
				if err := a.printEvent(ev, f.asJSON); err != nil {
					return err
				}
				if most--; most == 0 {
					return errDone
				}
				return nil
			})
			if errors.Is(err, errDone) {
				return nil
			}
			return err
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.follow, "follow", false, "go on until interrupted")
	c.Flags().IntVar(&most, "count", 0, "end after `N` events")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON, an MCP event per line")
	c.Flags().StringVar((*string)(&f.cursors), "cursor-file", "", "go on where the last run with this `FILE` ended")
	return c
}

// subscriptions returns the requests that the flags ask for: one for each condition and
// terminal, or one for each condition if no terminal is named.
func (f *eventFlags) subscriptions(c *cobra.Command, terminals []string) ([]events.Request, error) {
	if c.Flags().Changed("idle") && (f.idle < 500*time.Millisecond || f.idle > 10*time.Minute) {
		return nil, usage(c, "--idle must be 500ms to 10m")
	}
	type condition struct {
		name string
		args map[string]any
	}
	var all []condition
	add := func(is bool, name string, args map[string]any) {
		if is {
			all = append(all, condition{name, args})
		}
	}
	for _, p := range f.patterns {
		add(true, events.Line, map[string]any{"pattern": p})
	}
	some := len(f.patterns) > 0 || f.exit || f.commands || f.idle > 0 || f.problems || f.awaiting || f.ready || f.ports || f.verdict
	var failed map[string]any
	if f.failed {
		failed = map[string]any{"failedOnly": true}
	}
	onlyFailed := f.failed && !f.exit && !f.commands
	add(f.exit || !some && !f.failed || onlyFailed, events.Exited, failed)
	if !some {
		failed = map[string]any{"failedOnly": true}
	}
	add(f.commands || !some || onlyFailed, events.CommandFinished, failed)
	add(f.idle > 0, events.Idle, map[string]any{"idleMs": f.idle.Milliseconds()})
	add(f.problems || !some && !f.failed, events.Problems, nil)
	add(f.awaiting || !some && !f.failed, events.AwaitingInput, nil)
	add(f.ready, events.Ready, nil)
	add(f.ports, events.PortOpened, nil)
	add(f.ports, events.PortClosed, nil)
	add(f.verdict, events.VerdictChanged, nil)
	if len(terminals) == 0 {
		terminals = []string{""}
	}
	var subs []events.Request
	for _, id := range terminals {
		for _, one := range all {
			args := map[string]any{}
			maps.Copy(args, one.args)
			if id != "" {
				args["terminalId"] = id
			}
			text, err := json.Marshal(args)
			if err != nil {
				return nil, err
			}
			subs = append(subs, events.Request{Name: one.name, Arguments: text})
		}
	}
	if len(subs) > events.DefaultStreams {
		return nil, usage(c, "these are %d conditions, at most %d can be watched at once; name fewer terminals, or none for all", len(subs), events.DefaultStreams)
	}
	return subs, nil
}

// listener gets events from the daemon, and if the daemon is replaced, from the next one.
type listener struct {
	app    *app
	client *localclient.Client
	flags  *eventFlags
	subs   []events.Request
}

// run calls each for every event, in the order in which the events come, until no more
// follow. It ends with the first error of each.
func (l *listener) run(ctx context.Context, each func(*events.Event) error) error {
	if err := l.flags.cursors.Recall(l.subs); err != nil {
		return err
	}
	client, stop := staying(ctx, l.client, l.app.notice, nil)
	defer stop()
	h, err := client.Events(ctx, localapi.EventsRequest{Subscriptions: l.subs, Follow: l.flags.follow, Raw: l.flags.raw}, &localclient.Comeback{})
	if err == nil {
		defer h.Close()
		for err == nil {
			var x localapi.EventLine
			if x, err = h.Next(); err == nil {
				err = l.take(&x, each)
			}
		}
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, localclient.ErrDropped):
		return &hinted{err, "start it, and run this again; --cursor-file goes on where it ended"}
	}
	return err
}

// take handles one line of the stream.
func (l *listener) take(x *localapi.EventLine, each func(*events.Event) error) error {
	if x.Cursor != "" {
		l.subs[x.Sub].Cursor = &x.Cursor
	}
	switch {
	case x.Event != nil:
		if err := each(x.Event); errors.Is(err, errDone) {
			return errors.Join(err, l.flags.cursors.Remember(l.subs))
		} else if err != nil {
			return err
		}
	case x.Active && x.Truncated:
		l.app.notice("some events of %s are missing: the output was no longer kept", l.subs[x.Sub].Name)
	case x.End && x.Error != nil:
		return x.Error
	}
	if x.Cursor != "" && (x.Event != nil || x.Active || !l.flags.follow) {
		return l.flags.cursors.Remember(l.subs)
	}
	return nil
}

// maxEventLine bounds the printed text of an event, in characters, because agents'
// programs cut longer lines.
const maxEventLine = 400

// printLine prints x as JSON, in one line.
func (a *app) printLine(x any) error {
	data, err := json.Marshal(x)
	if err == nil {
		_, err = a.stdout.Write(append(data, '\n'))
	}
	return err
}

// printEvent prints an event on one line.
func (a *app) printEvent(ev *events.Event, asJSON bool) error {
	if asJSON {
		return a.printLine(ev)
	}
	_, err := fmt.Fprintln(a.stdout, display.Printable(events.Text(ev), maxEventLine))
	return err
}
