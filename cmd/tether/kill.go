package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func killCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "kill ID…", Short: "end terminals with everything that runs in them", Args: someArgs(1, -1, "the id or name of a terminal"),
		RunE: func(c *cobra.Command, refs []string) error {
			client, _, err := a.client()
			if err != nil {
				return err
			}
			var errs []error // the first decides the exit status
			for _, ref := range refs {
				t, err := client.Kill(c.Context(), ref)
				if err != nil {
					errs = append(errs, about(ref, err))
					continue
				}
				fmt.Fprintln(a.stdout, t.ID, exitText(*t.Exit))
			}
			return errors.Join(errs...)
		},
	}
}

// about says which terminal an error is about.
func about(ref string, err error) error { return fmt.Errorf("%s: %w", printable(ref, 40), err) }
