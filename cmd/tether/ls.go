package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/local"
)

func lsCommand(a *app) *cobra.Command {
	var asJSON bool
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
				a.notice("%d of an agent's commands wait for your approval: tether approvals", all.Waiting)
			}
			return a.printTerminals(all.Terminals, all.Declared)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printTerminals lists the terminals, then those that are declared and do not run.
func (a *app) printTerminals(all []local.Terminal, declared []local.Declared) error {
	if len(all)+len(declared) == 0 {
		a.notice("no terminals; start one with: tether run -- CMD")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tSTATE\tSINCE\tLENT TO\tCOMMAND")
	for _, t := range all {
		state, since := "running", t.Started
		if t.Exit != nil {
			state, since = exitText(*t.Exit), t.Exit.At
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, printable(t.Name, 24), state, ago(time.Since(since)),
			lentText(t), printable(shellLine(t.Command), 60)+urlText(t.Listening))
	}
	for _, d := range declared {
		if d.State == "running" {
			continue
		}
		command := d.Line
		if command == "" {
			command = shellLine(d.Command)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", "(declared)", d.Name, declaredText(d), ago(time.Since(d.Since)), "-", printable(command, 60))
	}
	return w.Flush()
}

func exitText(e local.Exit) string {
	if e.Signal != "" {
		return "killed " + e.Signal
	}
	return fmt.Sprintf("exited %d", e.Code)
}
