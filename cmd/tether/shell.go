package main

import (
	"github.com/spf13/cobra"

	"tether/agent/localapi"
)

func shellCommand(a *app) *cobra.Command {
	r := localapi.SpawnRequest{Shell: true}
	var detach bool
	c := &cobra.Command{
		Use: "shell [flags] [-- SHELL]", Short: "start your login shell in a terminal shared with the default host",
		Long: `start your login shell in a terminal shared with the default host.

The shell reports the start and end of each command, with its line and exit code, to
everyone who watches. Your own start-up files and settings are not changed.`,
		Args: someArgs(0, 1, "a shell"),
		RunE: func(c *cobra.Command, argv []string) error {
			r.Command = argv
			return a.run(c, r, detach)
		},
	}
	spawnFlags(c, &r, &detach)
	return c
}
