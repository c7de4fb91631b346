package main

import (
	"github.com/spf13/cobra"

	"tether/agent/local"
)

// replay is how much of what was printed before an attach shows, in bytes.
const replay = 64 << 10

func attachCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "attach ID", Short: "connect to a terminal, to watch it and type into it", Args: someArgs(1, 1, "the id or name of a terminal"),
		Long: `connect to a terminal: see what it printed last, then watch it and type into it.

At the start of a line ~. leaves it, ~? shows help. With several people attached
the terminal has the size of the smallest of their windows. The exit status is 0 after
leaving, else the command's own; 254 if the daemon ended it, 255 if it could not
be attached to.`,
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
			return a.attachTo(c.Context(), client, t.ID, local.AttachOptions{Tail: replay}, false)
		},
	}
}
