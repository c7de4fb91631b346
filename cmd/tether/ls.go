package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/local"
	"tether/agent/term"
	"tether/platform/tty"
)

func lsCommand(a *app) *cobra.Command {
	var asJSON, everything bool
	c := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "list the terminals", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, d, err := a.client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), listTimeout)
			defer cancel()
			done := a.progress(ctx, "waiting for the daemon")
			all, err := client.ListPorts(ctx)
			done()
			if err != nil {
				return stuck(d, err)
			}
			if asJSON {
				return a.printJSON(all)
			}
			if all.Waiting > 0 {
				a.notice("%s: tether approvals", awaiting(all.Waiting))
			}
			return a.printTerminals(all.Terminals, all.Declared, everything)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&everything, "all", "a", false, "include all exited terminals; an interactive list shows only the last few")
	return c
}

// shownExited is how many exited terminals an interactive list shows.
const shownExited = 5

// printTerminals lists the terminals, then the declared ones that are not running. An interactive list fits the window, and shows only the
// newest exited terminals unless all is set.
func (a *app) printTerminals(list []local.Terminal, declared []local.Declared, all bool) error {
	if len(list)+len(declared) == 0 {
		a.notice("no terminals; start one with: tether run -- CMD")
		return nil
	}
	hidden, width := 0, 0
	if tty.Is(a.stdout) {
		cols, _ := a.size()
		width = int(cols)
		if !all {
			list, hidden = foldExited(list, shownExited)
		}
	}
	t := columns{least: []int{0, 8, 0, 0, 6, 8, 10}, rows: [][]string{{"ID", "NAME", "STATE", "SINCE", "OWNER", "SHARED WITH", "COMMAND"}}}
	for _, x := range list {
		state, since := stateOf(x)
		t.rows = append(t.rows, []string{x.ID, printable(x.Name, 0), state, ago(time.Since(since)), ownerOf(x), lentText(x),
			printable(shellLine(x.Command), maxCommand) + urlText(x.Listening)})
	}
	for _, d := range declared {
		if d.State != "running" {
			t.rows = append(t.rows, []string{"(declared)", d.Name, declaredText(d), ago(time.Since(d.Since)), "you", "-",
				printable(cmp.Or(d.Line, shellLine(d.Command)), maxCommand)})
		}
	}
	_, err := fmt.Fprintln(a.stdout, strings.Join(t.lines(width), "\n"))
	if hidden > 0 {
		a.notice("%s not shown: tether ls --all", count(hidden, "older exited terminal"))
	}
	return err
}

// maxCommand is how many characters of a command line a list shows.
const maxCommand = 60

// foldExited drops all but the first most of the exited terminals.
func foldExited(list []local.Terminal, most int) (shown []local.Terminal, hidden int) {
	for _, t := range list {
		if t.Exit != nil {
			if most--; most < 0 {
				hidden++
				continue
			}
		}
		shown = append(shown, t)
	}
	return shown, hidden
}

// count is a number with its noun, whose plural takes an s.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// stateOf is the state of a terminal, and since when it has it.
func stateOf(t local.Terminal) (state string, since time.Time) {
	switch {
	case t.Exit != nil:
		return exitText(*t.Exit), t.Exit.At
	case t.Input == string(term.AwaitingInput), t.Input == string(term.AwaitingSecret):
		return awaitsText(t.Input), t.InputSince
	case t.Ready != "":
		return readyText(t.Ready), t.ReadySince
	case !t.Visible:
		return "background", t.Started
	}
	return "running", t.Started
}

// awaitsText is a state of input in words.
func awaitsText(input string) string { return strings.ReplaceAll(input, "_", " ") }

// ownerOf is the owner of a terminal: "you", or the agent's name.
func ownerOf(t local.Terminal) string {
	if t.Owner == term.User.String() {
		return "you"
	}
	return printable(strings.TrimPrefix(t.Owner, "agent "), 24)
}

// awaiting says how many commands of agents await the person's approval.
func awaiting(n int) string {
	if n == 1 {
		return "1 agent command awaits approval"
	}
	return fmt.Sprintf("%d agent commands await approval", n)
}

func exitText(e local.Exit) string {
	if e.Signal != "" {
		return "killed " + e.Signal
	}
	return fmt.Sprintf("exited %d", e.Code)
}
