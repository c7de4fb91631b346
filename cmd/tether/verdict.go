package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/verdict"
	"tether/cmd/tether/internal/display"
)

func verdictCommand(a *app) *cobra.Command {
	var asJSON, here bool
	c := &cobra.Command{
		Use: "verdict [NAME…]", Short: "say what is good or failing, and since which commit", Args: someArgs(0, 100, "names"),
		Long: `say of each series of runs, or of those that are named, whether it is good, failing or
unknown: since when, at which commit it was last good, at which it first failed, and which
problems are new. NAME is a name or a whole command line.`,
		Example: "  tether verdict\n  tether verdict 'go test ./...' --json",
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
			dir := ""
			if here {
				var err error
				if dir, err = os.Getwd(); err != nil {
					return err
				}
			}
			all, err := client.Verdicts(c.Context(), args, dir)
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(all)
			case len(all.Verdicts) == 0:
				a.notice("there are no runs to judge; tether runs lists what is kept")
			}
			for i := range all.Verdicts {
				fmt.Fprint(a.stdout, display.PrintableLines(all.Verdicts[i].Text(time.Now())))
			}
			return nil
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&here, "here", false, "only what ran in this directory or below it")
	return c
}

func diffCommand(a *app) *cobra.Command {
	var asJSON bool
	with := ""
	c := &cobra.Command{
		Use: "diff RUN", Short: "compare a run with the last good one", Args: someArgs(1, 1, "a run, or the name of a series"),
		Long: `compare the newest run of a name or command line, or one run, with the last good one
before, or with another: new problems, those that are gone, and lines that only one of the
two printed. Times, durations, pids, ports, temporary paths and hashes make no difference.`,
		Example: "  tether diff 'go test ./...'\n  tether diff build --with pty-k3f9x2ab",
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
			is, err := client.Compare(c.Context(), localclient.RunOptions{Name: args[0]}, with)
			switch {
			case err != nil:
				return err
			case asJSON:
				return a.printJSON(is)
			}
			a.printComparison(is)
			return nil
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&with, "with", "", "compare with this `RUN`")
	return c
}

func (a *app) printComparison(is localapi.Comparison) {
	side := func(p verdict.Point) string {
		when := strings.TrimSuffix(display.Clock(p.At)+" "+p.Commit, " ") // it may have no commit
		return display.Printable(fmt.Sprintf("%s (%s, %s)", p.Run, p.Why, when), 120)
	}
	fmt.Fprintf(a.stdout, "%s\nwith %s\n", side(is.Run), side(is.With))
	fmt.Fprintf(a.stdout, "problems: %d new, %d gone, %d the same\n", is.Problems.New, is.Problems.Gone, is.Problems.Same)
	list := func(sign string, all []localapi.Problem) {
		for i := range all {
			fmt.Fprintln(a.stdout, sign, display.Printable(all[i].Text(), 500))
		}
	}
	list("+", is.New)
	list("-", is.Gone)
	fmt.Fprintf(a.stdout, "lines: %d new, %d gone\n", is.Lines.Added, is.Lines.Removed)
	for _, l := range is.Added {
		fmt.Fprintln(a.stdout, "+", display.Printable(l.Text, 0))
	}
	for _, l := range is.Removed {
		fmt.Fprintln(a.stdout, "-", display.Printable(l.Text, 0))
	}
}
