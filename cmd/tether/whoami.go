package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tether/agent/term"
)

func whoamiCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "whoami", Short: "say for whom this program counts, and why", Args: noArgs,
		Long: `say for whom this program counts at the daemon, and why: for you, for an agent, or
for nobody.

A program that an agent has started counts as that agent, whatever it says. The
answer names the process or the mark in its environment that says so. Nobody is a
program that cannot be looked at, or that has ended; it may do nothing.

Of a program of yours it also says whether it shows a sign of a person: that it is in
the foreground of a terminal, or a token (tether token create --person). Approving,
lending, pairing, offering tools to a host, making tokens and typing into terminals
that you have started need one.`,
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
			fmt.Fprintf(a.stdout, "%s: %s\n", who.Actor, printable(who.Why, 0))
			switch {
			case who.Actor != term.User.String():
			case who.Sign != "":
				fmt.Fprintf(a.stdout, "sign of a person: %s\n", printable(who.Sign, 0))
			default:
				fmt.Fprintf(a.stdout, "no sign of a person: %s\n", printable(who.NoSign, 0))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
