package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tether/agent/localclient"
	"tether/internal/jsonspan"
)

func envCommand(a *app) *cobra.Command {
	var refresh, asJSON bool
	c := &cobra.Command{
		Use: "env", Short: "show the default environment of terminals", Args: noArgs,
		Long: `show the default environment of terminals: the environment of your interactive login.

Terminals get it if their caller passes no environment. The daemon reads it from your
login shell once; --refresh reads it again after you changed the start-up files.`,
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, _ []string) error {
			done := a.progress(c.Context(), "waiting for your login shell")
			e, err := client.Environment(c.Context(), refresh)
			done()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(e)
			}
			for _, entry := range jsonspan.Words(e.Env, e.EnvBytes) {
				fmt.Fprintln(a.stdout, entry)
			}
			return nil
		}),
	}
	c.Flags().BoolVar(&refresh, "refresh", false, "read the environment from the login shell again")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
