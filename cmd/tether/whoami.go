package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func whoamiCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "whoami", Short: "say for whom this program counts, and why", Args: noArgs,
		Long: `say for whom this program counts at the daemon, and why: for you, for an agent, or
for nobody.

A program that an agent has started counts as that agent, whatever it says. The
answer names the process or the mark in its environment that says so. Nobody is a
program that cannot be looked at, or that has ended; it may do nothing.`,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			who, err := client.Whoami(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(who)
			}
			_, err = fmt.Fprintf(a.stdout, "%s: %s\n", who.Actor, printable(who.Why, 0))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
