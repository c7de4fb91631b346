package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

func commandsCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "commands ID", Short: "list the commands that a shell ran", Args: someArgs(1, 1, "the id or name of a terminal"),
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
			all, err := client.Commands(c.Context(), args[0])
			if err != nil {
				return about(args[0], err)
			}
			if asJSON {
				return a.printJSON(all)
			}
			return a.printCommands(all)
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printCommands(all localapi.CommandList) error {
	if len(all.Commands) == 0 {
		if !all.CommandDetection {
			a.notice("no commands reported: the terminal runs no shell, or a shell without integration")
		}
		return nil
	}
	w := a.table("N\tEXIT\tSTARTED\tTOOK\tBYTES\tLINE")
	for _, c := range all.Commands {
		exit, took, line := "?", "-", "(unknown)"
		switch {
		case c.Running:
			exit = "running"
		case c.Exit != nil:
			exit = strconv.Itoa(*c.Exit)
		}
		if c.DurationMs != nil {
			took = time.Duration(*c.DurationMs * float64(time.Millisecond)).Round(time.Millisecond).String()
		}
		if c.Line != nil {
			line = display.Printable(*c.Line, 80)
		}
		if c.Within > 0 {
			line = "  " + line
		}
		if !c.Verified {
			line += " (unverified)"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\n", c.N, exit, c.Started.Local().Format(time.TimeOnly), took, c.End-c.Start, line)
	}
	return w.Flush()
}
