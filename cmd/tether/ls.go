package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
)

func lsCommand(a *app) *cobra.Command {
	var asJSON, everything, watchers bool
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
			if len(all.Crowded) > 0 {
				a.notice("agents have the maximum of connections to the daemon: %s", display.Connections(all.Crowded))
			}
			lent := display.Lent
			if watchers {
				lent = display.LentInFull
			}
			a.printTerminals(all.Terminals, all.Declared, everything, lent)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&everything, "all", "a", false, "include all exited terminals; an interactive list shows only the last few")
	c.Flags().BoolVar(&watchers, "watchers", false, "say who watches each shared terminal, and since when")
	return c
}

// shownExited is how many exited terminals an interactive list shows.
const shownExited = 5

// printTerminals lists the terminals, then the declared ones that are not running. An
// interactive list fits the window, and shows only the newest exited terminals unless all
// is set. lent says with whom one is shared.
func (a *app) printTerminals(list []localapi.Terminal, declared []localapi.Declared, all bool, lent func(localapi.Terminal) string) {
	if len(list)+len(declared) == 0 {
		a.notice("no terminals; start one with: tether run -- CMD")
		return
	}
	hidden, width := 0, 0
	if tty.Is(a.stdoutFile) {
		cols, _ := a.size()
		width = int(cols)
		if !all {
			list, hidden = foldExited(list, shownExited)
		}
	}
	t := display.Columns{Least: []int{0, 8, 0, 0, 6, 8, 10}, Rows: [][]string{{"ID", "NAME", "STATE", "SINCE", "OWNER", "SHARED WITH", "COMMAND"}}}
	for _, x := range list {
		state, since := display.StateOf(x)
		t.Rows = append(t.Rows, []string{x.ID, display.Printable(x.Name, 0), state, display.Ago(time.Since(since)), display.OwnerOf(x), lent(x),
			display.Command(x)})
	}
	for _, d := range declared {
		if d.State != "running" {
			t.Rows = append(t.Rows, []string{"(declared)", d.Name, display.Declared(d), display.Ago(time.Since(d.Since)), "you", "-",
				display.Printable(cmp.Or(d.Line, display.ShellLine(d.Command)), display.MaxCommand)})
		}
	}
	fmt.Fprintln(a.stdout, strings.Join(t.Lines(width), "\n"))
	if hidden > 0 {
		a.notice("%s not shown: tether ls --all", display.Count(hidden, "older exited terminal"))
	}
}

// foldExited drops all but the first most of the exited terminals.
func foldExited(list []localapi.Terminal, most int) (shown []localapi.Terminal, hidden int) {
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

// awaiting returns a text that says how many commands of agents wait for the person's
// approval.
func awaiting(n int) string {
	if n == 1 {
		return "1 agent command awaits approval"
	}
	return fmt.Sprintf("%d agent commands await approval", n)
}
