package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/doctor"
)

func doctorCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "check for problems and suggest fixes", Args: noArgs,
		Long: `check for problems and suggest fixes.

Each check has a result: ok, warn (it works, but not at its best), fail, or skip (not
applicable to this system or state). The exit status is 1 if a check fails. The checks
change nothing, but they create and remove a test file in tether's directories and a
test entry in the keyring, and connect to the paired hosts with their tokens.`,
		Example: "  tether doctor\n  tether doctor --json | jq '.checks[] | select(.result != \"ok\")'",
		RunE: func(c *cobra.Command, _ []string) error {
			done := a.progress(c.Context(), "checking hosts and services")
			all := a.examine(c.Context())
			done()
			var err error
			if asJSON {
				err = a.printJSON(all)
			} else {
				err = doctor.Print(a.stdout, all.Checks)
			}
			if all.Failed > 0 {
				err = errors.Join(err, exitCode(localapi.ExitFailure))
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// examine runs all checks.
func (a *app) examine(ctx context.Context) doctor.Examination {
	client, d, err := a.client()
	if err != nil {
		return doctor.WithoutDirectories(err)
	}
	defer client.Close()
	return doctor.Examine(ctx, doctor.Machine{Dirs: d, Client: client, Unknown: strangeText(), Container: container(), Agents: agentsHere, Executors: executorsHere,
		Config: func() (string, error) {
			path, _, err := loadConfig()
			return path, err
		}})
}
