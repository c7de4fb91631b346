package main

import (
	"os"

	"github.com/spf13/cobra"

	"tether/cmd/tether/internal/tui"
	"tether/platform/tty"
)

func uiCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "ui", Short: "show and control all terminals on one screen", Args: noArgs,
		Long: `show and control all terminals on one screen, with the output of the selected one.

` + tui.Help,
		RunE: func(c *cobra.Command, _ []string) error {
			if !tty.Is(a.stdin) || !tty.Is(a.stdoutFile) {
				return &usageError{"ui needs an interactive terminal", "tether ls lists the terminals for scripts"}
			}
			if os.Getenv("TERM") == "dumb" {
				return &usageError{"ui moves the cursor, which a terminal with TERM=dumb cannot do",
					"tether ls lists the terminals; if this terminal can move the cursor: TERM=xterm-256color tether ui"}
			}
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			return tui.Run(c.Context(), client, a.stdin, a.stdoutFile)
		},
	}
}
