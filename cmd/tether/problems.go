package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/problems"
)

func problemsCommand(a *app) *cobra.Command {
	var o localclient.ProblemOptions
	var asJSON bool
	run := ""
	c := &cobra.Command{
		Use: "problems ID", Short: "list what compilers, linters and tests complain about in a terminal", Args: orRun(&run),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Since < 0 || o.Max < 0 || o.Max > 1000 {
				return usage(c, "--since must not be negative, and --max must be 0 to 1000")
			}
			if run != "" && o.Raw {
				return usage(c, "what is kept of runs is always masked: --run cannot be combined with --raw")
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			ask, ref := client.Problems, run
			if run != "" {
				ask = client.RunProblems
			} else {
				ref = args[0]
			}
			list, err := ask(c.Context(), ref, o)
			if err != nil {
				return about(ref, err)
			}
			if asJSON {
				return a.printJSON(list)
			}
			a.printProblems(list)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().Int64Var(&o.Since, "since", 0, "only what was printed after the `CURSOR` of an earlier answer (--json)")
	c.Flags().IntVar(&o.Max, "max", 0, "at most `N` problems")
	c.Flags().BoolVar(&o.Raw, "raw", false, "do not mask secrets")
	addRunFlag(c, &run)
	return c
}

func (a *app) printProblems(list localapi.ProblemList) {
	for _, p := range list.Problems {
		line := p.Severity + ": " + p.Message
		if at := problems.Place(p.File, p.Line, p.Column); at != "" {
			line = at + ": " + line
		}
		if p.Code != "" {
			line += " [" + p.Code + "]"
		}
		if p.Count > 1 {
			line += fmt.Sprintf(" (%d times)", p.Count)
		}
		if p.Taken != "" {
			line += "; " + p.Taken
		}
		fmt.Fprintln(a.stdout, display.Printable(line, 2000))
	}
	switch {
	case len(list.Problems) > 0:
	case list.Succeeded:
		a.notice("no problems")
	default:
		a.notice("no problems recognised")
	}
	for _, line := range list.Unrecognised {
		a.notice("of no known format: %s", display.Printable(line, 200))
	}
	a.noteMasked(list.Masked)
	if list.Unseen > 0 {
		a.notice("the first %d bytes of output were gone before anybody looked at them", list.Unseen)
	}
}

// noteMasked reports that parts of the output are masked, so that nobody writes stars
// back into a file.
func (a *app) noteMasked(places int) {
	if places > 0 {
		a.notice("masked in the output: %s, such as secrets as stars", display.Count(places, "place"))
	}
}
