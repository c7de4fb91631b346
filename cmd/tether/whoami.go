package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tether/agent/localclient"
	"tether/agent/term"
	"tether/cmd/tether/internal/display"
)

func whoamiCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "whoami", Short: "show whether this program acts as you or as an agent, and why", Args: noArgs,
		Long: `show as whom this program acts at the daemon, and why: as you, as an agent, or as
nobody.

A program that an agent has started acts as that agent, whatever it claims to be. The
answer names the process or the environment variable that decides this. A program that
cannot be inspected, or has ended, is nobody and may do nothing.

For your own programs, it also shows whether there is a sign of a person: the program
runs in the foreground of a terminal, or has a token (tether token create --person).
This is needed to approve, lend, pair, offer tools to a host, create tokens and type
into terminals that you have started.`,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, _ []string) error {
			who, err := client.Whoami(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(who)
			}
			text := fmt.Sprintf("%s: %s\n", who.Actor, display.Printable(who.Why, 0))
			switch {
			case who.Actor != term.User.String():
			case who.Sign != "":
				text += fmt.Sprintf("sign of a person: %s\n", display.Printable(who.Sign, 0))
			default:
				text += fmt.Sprintf("no sign of a person: %s\n", display.Printable(who.NoSign, 0))
			}
			fmt.Fprint(a.stdout, text)
			return nil
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
