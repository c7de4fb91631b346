package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
)

func lsCommand(a *app) *cobra.Command {
	var asJSON, everything, watchers, wide, changes, unseen bool
	c := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "list the terminals", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if unseen && (everything || wide || changes || watchers) {
				return usage(c, "--unseen lists no terminals: it can be combined with --json alone")
			}
			client, d, err := a.client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), listTimeout)
			defer cancel()
			if unseen {
				return a.unseenPorts(ctx, client, asJSON)
			}
			done := a.progress(ctx, "waiting for the daemon")
			list := client.ListPorts
			if changes {
				list = client.ListChanges
			}
			all, err := list(ctx)
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
			how := listing{all: everything, wide: wide || changes, lent: display.Lent}
			if watchers {
				how.lent = display.LentInFull
			}
			a.printTerminals(all.Terminals, all.Declared, how)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&everything, "all", "a", false, "include all exited terminals; an interactive list shows only the last few")
	c.Flags().BoolVarP(&wide, "wide", "w", false, "show the git checkout of each terminal, and cut no line; without it, checkouts are shown if several are in use")
	c.Flags().BoolVar(&changes, "changes", false, "as --wide, and say in which checkouts files have changed; takes up to some seconds")
	c.Flags().BoolVar(&watchers, "watchers", false, "say who watches each shared terminal, and since when")
	c.Flags().BoolVar(&unseen, "unseen", false, "list the ports on which programs of yours listen that are in no terminal, and how to bring them into one")
	return c
}

// shownExited is how many exited terminals an interactive list shows.
const shownExited = 5

// listing says how terminals are listed.
type listing struct {
	all  bool                           // exited terminals too; else an interactive list shows only the newest
	wide bool                           // with checkouts, in lines of any width
	lent func(localapi.Terminal) string // says with whom a terminal is shared
}

// printTerminals lists the terminals, then the declared ones that are not running. An
// interactive list fits the window.
func (a *app) printTerminals(list []localapi.Terminal, declared []localapi.Declared, how listing) {
	if len(list)+len(declared) == 0 {
		a.notice("no terminals; start one with: tether run -- CMD")
		return
	}
	hidden, width := 0, 0
	if tty.Is(a.stdoutFile) {
		cols, _ := a.size()
		width = int(cols)
		if !how.all {
			list, hidden = foldExited(list, shownExited)
		}
	}
	if how.wide {
		width = 0
	}
	t := display.Columns{Least: []int{0, 8, 0, 0, 6, 8, 10}, Rows: [][]string{{"ID", "NAME", "STATE", "SINCE", "OWNER", "SHARED WITH", "COMMAND"}}}
	checkouts := []string{"CHECKOUT"}
	for _, x := range list {
		state, since := display.StateOf(x)
		t.Rows = append(t.Rows, []string{x.ID, display.Printable(x.Name, 0), state, display.Ago(time.Since(since)), display.OwnerOf(x), how.lent(x),
			display.Command(x)})
		checkouts = append(checkouts, display.Checkout(x, list))
	}
	for _, d := range declared {
		if d.State != "running" {
			t.Rows = append(t.Rows, []string{"(declared)", d.Name, display.Declared(d), display.Ago(time.Since(d.Since)), "you", "-",
				display.Printable(cmp.Or(d.Line, display.ShellLine(d.Command)), display.MaxCommand)})
		}
	}
	if how.wide || display.SeveralCheckouts(list) {
		const after = 2 // columns
		t.Least = slices.Insert(t.Least, after, 8)
		for i := range t.Rows {
			checkout := "-"
			if i < len(checkouts) {
				checkout = checkouts[i]
			}
			t.Rows[i] = slices.Insert(t.Rows[i], after, checkout)
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
