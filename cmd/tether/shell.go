package main

import (
	"github.com/spf13/cobra"

	"tether/agent/local"
)

func shellCommand(a *app) *cobra.Command {
	r := local.SpawnRequest{Shell: true}
	var detach bool
	c := &cobra.Command{
		Use: "shell [flags] [-- SHELL]", Short: "start your login shell in a terminal that the default host sees",
		Long: `start your login shell in a terminal that the default host sees.

The shell reports where each command begins and ends, with its line and exit
code, to whoever watches; your own files and settings stay as they are.`,
		Args: someArgs(0, 1, "at most a shell"),
		RunE: func(c *cobra.Command, argv []string) error {
			r.Command = argv
			return a.run(c, r, detach)
		},
	}
	spawnFlags(c, &r, &detach)
	return c
}
