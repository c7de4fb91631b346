package main

import (
	"github.com/spf13/cobra"

	"tether/agent/local"
)

// replay is how much earlier output an attach shows, in bytes.
const replay = 64 << 10

func attachCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "attach ID", Short: "connect to a terminal: see its output and type into it", Args: someArgs(1, 1, "the id or name of a terminal"),
		Long: `connect to a terminal: see its latest output, follow it and type into it.

At the start of a line, ~. detaches and ~? shows help. With several people attached,
the terminal takes the size of the smallest window. The exit status is 0 after a
detach, otherwise the command's own; 254 if the daemon ended the connection, 255 if
the attach failed.`,
		Example: "  tether attach web",
		RunE: func(c *cobra.Command, args []string) error {
			client, _, err := a.client()
			if err != nil {
				return &cannotAttach{err}
			}
			client = client.Patient(silence(a.notice))
			t, err := client.Find(c.Context(), args[0])
			if err != nil {
				return &cannotAttach{about(args[0], err)}
			}
			return a.attachTo(c.Context(), client, t.ID, local.AttachOptions{Tail: replay, Screen: true}, false)
		},
	}
}
