package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/local"
)

func tokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "make and revoke tokens, for HTTP and for scripts", SuggestionsMinimumDistance: 2,
		Long: `make and revoke tokens, for access over HTTP and for scripts.

Where local.listen is configured, browsers and agents can reach the daemon through
loopback TCP with a token. Your own token may do all that you may; an agent's may
see your terminals and run its own in the background. docs/LOCAL-API.md says how
to send one.

A token for your scripts, tether token create --person NAME, shows that you are
behind a program that runs without a terminal.`,
		Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a), tokenShowCommand(a))
	return c
}

func tokenCreateCommand(a *app) *cobra.Command {
	var asJSON, person bool
	c := &cobra.Command{Use: "create [--person] NAME", Short: "make a token for an agent, or for your scripts, and print it, once", Args: someArgs(1, 1, "a name"),
		Long: `make a token for an agent, or for your scripts, and print it, once: only a hash is kept.

NAME is that under which the agent acts, 1 to 64 of the characters A-Z a-z 0-9 . _ : @ -

Some things need a sign that a person is there: approving, lending, pairing, offering
tools to a host, making tokens, and typing into terminals that you have started. A
command at a terminal has one. A script without a terminal has one with a token of
yours, in a file that TETHER_TOKEN_FILE names:

  (umask 077; tether token create --person backup >~/.tether-backup)
  TETHER_TOKEN_FILE=~/.tether-backup tether lend build --host lab

Such a token counts at the daemon's socket alone, and nothing for a program that an
agent has started. Whoever can read the file can do what you can: keep it where no
agent reads, and revoke it when the script is gone. In a home that no agent has used
yet, making one needs no terminal.`,
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			create := client.CreateToken
			if person {
				create = client.CreatePersonToken
			}
			t, err := create(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printToken(t, asJSON)
		}}
	c.Flags().BoolVar(&person, "person", false, "it is yours, for scripts; NAME tells it from others")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func tokenShowCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "show", Short: "print your own token", Args: noArgs,
		Long: `print your own token, which is made the first time.

Whoever has it can type into your terminals. tether token revoke user replaces it.`,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			t, err := client.UserToken(c.Context())
			if err != nil {
				return err
			}
			return a.printToken(t, asJSON)
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printToken(t local.NewToken, asJSON bool) error {
	if asJSON {
		return a.printJSON(t)
	}
	_, err := fmt.Fprintln(a.stdout, t.Token)
	return err
}

func tokenListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "list the tokens that were made", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			all, err := client.Tokens(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(all)
			}
			if len(all.Tokens) == 0 {
				a.notice("no tokens; create one with: tether token create NAME")
				return nil
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tOF\tSINCE")
			for _, t := range all.Tokens {
				of := "an agent"
				if t.Person {
					of = "yours"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", t.Principal, of, ago(time.Since(t.Created)))
			}
			return w.Flush()
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func tokenRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "revoke NAME", Short: "end a token, and what it has opened", Args: someArgs(1, 1, "a name"),
		Long: `end a token, and what it has opened. An agent's terminals run on.

tether token revoke user replaces your own token by another.`,
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			if err := client.RevokeToken(c.Context(), args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, "revoked the token of", printable(args[0], 0))
			return err
		}}
}
