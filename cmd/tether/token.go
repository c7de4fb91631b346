package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
)

func tokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "create, list and revoke tokens for HTTP and for scripts", SuggestionsMinimumDistance: 2,
		Long: `create, list and revoke tokens for access over HTTP and for scripts.

If local.listen is configured, browsers and agents can reach the daemon over loopback
TCP with a token. Your own token has all your rights. An agent's token can see your
terminals and run its own in the background. docs/LOCAL-API.md describes how to send
a token.

Scripts that run without a terminal act for you with a token from
tether token create --person NAME.`,
		Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a), tokenShowCommand(a))
	return c
}

func tokenCreateCommand(a *app) *cobra.Command {
	var asJSON, person bool
	c := &cobra.Command{Use: "create [--person] NAME", Short: "create a token for an agent or for your scripts, and print it once", Args: someArgs(1, 1, "a name"),
		Long: `create a token for an agent or for your scripts, and print it once: only a hash is
stored.

NAME identifies the agent: 1 to 64 of the characters A-Z a-z 0-9 . _ : @ -

Some actions need a sign of a person: approving, lending, pairing, offering tools to a
host, creating tokens, and typing into terminals that you have started. A command that
runs at a terminal has this sign. A script without a terminal needs one of your tokens,
in the file named by TETHER_TOKEN_FILE:

  (umask 077; tether token create --person backup >~/.tether-backup)
  TETHER_TOKEN_FILE=~/.tether-backup tether lend build --host lab

Such a token works only at the daemon's socket, and not in programs that an agent has
started. Whoever can read the file has your rights: keep it where no agent can read it,
and revoke it when you no longer use the script. At a terminal the command asks for a
typed word. As long as no agent has used this tether home, you can create such a token
without a terminal.`,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, args []string) error {
			create := client.CreateToken
			if person {
				if err := a.confirmPersonToken(c.Context(), client); err != nil {
					return err
				}
				create = client.CreatePersonToken
			}
			t, err := create(c.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printToken(t, asJSON)
		})}
	c.Flags().BoolVar(&person, "person", false, "a token of your own, for scripts; NAME identifies it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// personWord is typed to make a token of the person's.
const personWord = "person"

// confirmPersonToken asks for a typed word, at the person's terminal, wherever the
// standard files lead. It does not ask a program that has no terminal, which needs
// another sign of a person, and none that the daemon refuses anyway.
func (a *app) confirmPersonToken(ctx context.Context, client *localclient.Client) error {
	who, err := client.Whoami(ctx)
	if err != nil || who.Sign == "" {
		return err
	}
	in, out, ok := tty.Person()
	if !ok {
		return nil
	}
	defer in.Close()
	defer out.Close()
	fmt.Fprintf(out, "Such a token gives every program that can read it all your rights, also to approve what agents request.\nType the word %s to create it: ", personWord)
	line, err := readLine(ctx, in)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != personWord {
		return errors.New("token create: no token was created, since the word was not typed")
	}
	return nil
}

func tokenShowCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "show", Short: "print your own token", Args: noArgs,
		Long: `print your own token; the first call creates it.

Whoever has this token can type into your terminals. tether token revoke user
replaces it.`,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, _ []string) error {
			t, err := client.UserToken(c.Context())
			if err != nil {
				return err
			}
			return a.printToken(t, asJSON)
		})}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) printToken(t localapi.NewToken, asJSON bool) error {
	if asJSON {
		return a.printJSON(t)
	}
	fmt.Fprintln(a.stdout, t.Token)
	return nil
}

func tokenListCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "list the tokens", Args: noArgs,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, _ []string) error {
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
			w := a.table("NAME\tOWNER\tSINCE")
			for _, t := range all.Tokens {
				owner := "agent"
				if t.Person {
					owner = "you"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", t.Principal, owner, display.Ago(time.Since(t.Created)))
			}
			return w.Flush()
		})}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func tokenRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "revoke NAME", Short: "revoke a token and close its connections", Args: someArgs(1, 1, "a name"),
		Long: `revoke a token and close its connections. An agent's terminals keep running.

tether token revoke user replaces your own token with a new one.`,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, args []string) error {
			if err := client.RevokeToken(c.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "revoked the token of", display.Printable(args[0], 0))
			return nil
		})}
}
