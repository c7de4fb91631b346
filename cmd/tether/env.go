package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func envCommand(a *app) *cobra.Command {
	var refresh, asJSON bool
	c := &cobra.Command{
		Use: "env", Short: "show the environment that terminals get when nobody gives them one", Args: noArgs,
		Long: `show the environment that terminals get when nobody gives them one.

It is that of an interactive login of yours. The daemon asks your login shell
once; --refresh asks again, after you have changed its start-up files.`,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			done := a.progress(c.Context(), "asking your login shell")
			e, err := client.Environment(c.Context(), refresh)
			done()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(e)
			}
			for _, entry := range e.Env {
				fmt.Fprintln(a.stdout, entry)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&refresh, "refresh", false, "ask the login shell again")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
