package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
)

// past is a flag for a time that long ago, such as 2d.
type past time.Duration

// String implements pflag.Value.
func (p *past) String() string {
	if *p == 0 {
		return ""
	}
	return config.Duration(*p).String()
}

// Set implements pflag.Value.
func (p *past) Set(text string) error {
	d, err := config.ParseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("it must not be 0")
	}
	*p = past(d)
	return err
}

// Type implements pflag.Value.
func (p *past) Type() string { return "past" }

// at is the time; zero without the flag.
func (p *past) at() time.Time {
	if *p == 0 {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(*p))
}

func runsCommand(a *app) *cobra.Command {
	var asJSON bool
	var since past
	o := localclient.RunOptions{Max: 100}
	c := &cobra.Command{
		Use: "runs [NAME|DIR]", Short: "list what ran in terminals: the kept runs", Args: someArgs(0, 1, "a name, command line, run or directory"),
		Long: `list the kept runs, the newest first. A run is one terminal from its start to its exit,
or one command of a shell. They outlive the terminal, the daemon and the machine's
restarts; [history] in the configuration says for how long.

NAME is a name, a whole command line, or the id of a run or terminal. DIR, such as . or
/src/app, lists what ran in or below it.`,
		Example: "  tether runs\n  tether runs . --since 2d\n  tether runs --json 'go test ./...' | jq -r '.runs[0].id'",
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
			if err := checkRange(c, "--max", int64(o.Max), 1, 100_000); err != nil {
				return err
			}
			if len(args) > 0 {
				if err := chosen(&o, args[0]); err != nil {
					return err
				}
			}
			o.Since = since.at()
			list := localapi.RunList{SchemaVersion: localapi.SchemaVersion, Runs: []localapi.Run{}}
			var err error
			list.More, err = client.Runs(c.Context(), o, func(r *localapi.Run) { list.Runs = append(list.Runs, *r) })
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(list)
			}
			return a.printRuns(list)
		}),
	}
	c.Flags().Var(&since, "since", "only what ran in the last `TIME`, such as 2d or 1h30m")
	c.Flags().IntVar(&o.Max, "max", o.Max, "at most `N` runs")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// chosen sets what an argument of runs names.
func chosen(o *localclient.RunOptions, arg string) error {
	if arg == "" {
		return &usageError{message: "the name is empty", hint: "tether runs lists all"}
	}
	if !isDirectory(arg) {
		o.Name = arg
		return nil
	}
	dir, err := filepath.Abs(arg)
	o.Dir = dir
	return err
}

// isDirectory reports whether an argument means a directory rather than a name.
func isDirectory(arg string) bool {
	if arg == "." || arg == ".." || filepath.IsAbs(arg) {
		return true
	}
	info, err := os.Stat(arg)
	return strings.ContainsAny(arg, "/"+string(filepath.Separator)) && err == nil && info.IsDir()
}

func (a *app) printRuns(list localapi.RunList) error {
	if len(list.Runs) == 0 {
		a.notice("no runs are kept that fit")
		return nil
	}
	w := a.table("RUN\tSTARTED\tTOOK\tOUTCOME\tPROBLEMS\tCHECKOUT\tCOMMAND")
	for _, r := range list.Runs {
		took := "-"
		if !r.Ended.IsZero() {
			took = display.Ago(r.Ended.Sub(r.Started))
		}
		checkout := "-"
		if r.Checkout != nil {
			checkout = display.Printable(r.Checkout.Label(), 40)
		}
		line := display.Printable(r.Line, 60)
		if r.Name != "" && r.Name != r.Line {
			line = display.Printable(r.Name, 30) + ": " + line
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, display.Clock(r.Started), took, outcomeText(&r), problemCounts(r.Errors, r.Warnings), checkout, line)
	}
	err := w.Flush()
	if list.More {
		a.notice("there are more: --max N lists them, --since TIME fewer")
	}
	return err
}

func outcomeText(r *localapi.Run) string {
	if r.Outcome == "uncounted" || r.Outcome == "failing" && r.Why != "" {
		return display.Printable(cmp.Or(r.Why, r.Outcome), 40)
	}
	return r.Outcome
}

func problemCounts(errors, warnings int) string {
	switch {
	case errors > 0 && warnings > 0:
		return display.Count(errors, "error") + ", " + display.Count(warnings, "warning")
	case errors > 0:
		return display.Count(errors, "error")
	case warnings > 0:
		return display.Count(warnings, "warning")
	}
	return "-"
}

func searchCommand(a *app) *cobra.Command {
	var asJSON, here bool
	var since past
	o := localclient.SearchOptions{RunOptions: localclient.RunOptions{Max: 100}, Context: 2, Timeout: 10 * time.Second}
	c := &cobra.Command{
		Use: "search PATTERN", Short: "find lines in everything that terminals have printed", Args: someArgs(1, 1, "a pattern"),
		Long: `find lines in all kept runs, the newest first, with the lines around them and the run
that printed them; tether read --run RUN prints that run.

PATTERN is a regular expression (RE2), or with -F a text. It is compared with lines as a
person sees them: colours and the earlier states of progress bars do not count. Secrets
are masked in what is kept.`,
		Example: "  tether search 'connection refused'\n  tether search -i 'error.*TS[0-9]+' --since 2d --here\n  tether search -F '[core]' --name web --context 0",
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
			err := cmp.Or(checkRange(c, "--max", int64(o.Max), 1, 1000), checkRange(c, "--context", int64(o.Context), 0, 20))
			if err != nil {
				return err
			}
			if o.Timeout < time.Millisecond || o.Timeout > 10*time.Minute {
				return usage(c, "--timeout must be 1ms to 10m")
			}
			if here {
				if o.Dir, err = os.Getwd(); err != nil {
					return err
				}
			}
			o.Pattern, o.Since = args[0], since.at()
			return a.search(c.Context(), client, o, asJSON)
		}),
	}
	f := c.Flags()
	f.BoolVarP(&o.Fixed, "fixed", "F", false, "PATTERN is a text, not a regular expression")
	f.BoolVarP(&o.IgnoreCase, "ignore-case", "i", false, "upper and lower case are the same")
	f.StringVar(&o.Name, "name", "", "only runs with this `NAME`, command line or id")
	f.BoolVar(&here, "here", false, "only what ran in this directory or below it")
	f.Var(&since, "since", "only what was printed in the last `TIME`, such as 2d")
	f.IntVarP(&o.Context, "context", "C", o.Context, "print `N` lines before and after each match, at most 20")
	f.IntVar(&o.Max, "max", o.Max, "end after `N` matches, at most 1000")
	f.DurationVar(&o.Timeout, "timeout", o.Timeout, "end after this `TIME` with what was found")
	f.BoolVar(&asJSON, "json", false, "print JSON, an object per line; the last one says how far the search came")
	return c
}

// search prints the matching lines as they come.
func (a *app) search(ctx context.Context, client *localclient.Client, o localclient.SearchOptions, asJSON bool) error {
	last := ""
	var failed error
	end, err := client.Search(ctx, o, func(x *localapi.Hit) {
		if asJSON {
			failed = cmp.Or(failed, a.printLine(localapi.FoundLine{Hit: x}))
			return
		}
		if x.Run != last {
			if last != "" {
				fmt.Fprintln(a.stdout)
			}
			a.printHitHead(x)
		} else if o.Context > 0 {
			fmt.Fprintln(a.stdout, "  --")
		}
		last = x.Run
		a.printHit(x)
	})
	switch err = cmp.Or(err, failed); {
	case errors.Is(err, localclient.ErrDropped):
		return &hinted{err, "run this again"}
	case err != nil:
		return err
	case asJSON:
		return a.printLine(end)
	case end.Hits == 0 && end.Back.IsZero():
		a.notice("no line matches in what is kept")
	case end.More:
		a.notice("ended after %s, searched back to %s: --max N finds more", display.Count(end.Hits, "matching line"), display.Clock(end.Back))
	case !end.Back.IsZero():
		a.notice("searched back to %s in %s: --timeout TIME searches longer, --since TIME and --name NAME less", display.Clock(end.Back), o.Timeout)
	}
	return nil
}

// printHitHead says which run the lines below are of.
func (a *app) printHitHead(x *localapi.Hit) {
	head := x.Run
	if x.Name != "" && x.Name != x.RunLine {
		head += " " + display.Printable(x.Name, 40)
	}
	if x.RunLine != "" {
		head += ": " + display.Printable(x.RunLine, 80)
	}
	fmt.Fprintln(a.stdout, display.Dim(a.stdoutFile, head+" ("+display.Printable(x.Cwd, 80)+", "+display.Clock(x.Time)+")"))
}

// printHit prints a line with those around it. The line itself begins with >.
func (a *app) printHit(x *localapi.Hit) {
	for _, line := range x.Before {
		fmt.Fprintln(a.stdout, strings.TrimRight("  "+display.Printable(line, 0), " "))
	}
	line := display.Printable(x.Line, 0)
	if from, to := x.Match[0], x.Match[1]; display.Colours(a.stdoutFile) && from >= 0 && from < to && to <= len(x.Line) {
		line = display.Printable(x.Line[:from], 0) + "\x1b[1;31m" + display.Printable(x.Line[from:to], 0) + "\x1b[0m" + display.Printable(x.Line[to:], 0)
	}
	fmt.Fprintln(a.stdout, "> "+line)
	for _, line := range x.After {
		fmt.Fprintln(a.stdout, strings.TrimRight("  "+display.Printable(line, 0), " "))
	}
}

func forgetCommand(a *app) *cobra.Command {
	var all bool
	var before past
	c := &cobra.Command{
		Use: "forget [RUN…]", Short: "remove runs from what is kept", Args: someArgs(0, -1, ""),
		Long: `remove runs: from the history on the disk, and what exited terminals have printed also
from the daemon's memory. What a running terminal has printed until now goes, too, and it
runs on. RUN is the id or the name of runs, as tether runs lists them, or of a terminal,
which includes the commands of its shell.

The audit log stays, since its chain proves that nothing was removed. What the disk keeps
in freed blocks is not overwritten.`,
		Example: "  tether forget pty-k3f9x2ab\n  tether forget --before 1d\n  tether forget --all",
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
			given := 0
			for _, is := range []bool{len(args) > 0, all, before != 0} {
				if is {
					given++
				}
			}
			if given != 1 {
				return usage(c, "name runs, or give --all or --before TIME: one of them")
			}
			is, err := client.Forget(c.Context(), localapi.ForgetRequest{Runs: args, All: all, Before: before.at()})
			if err != nil {
				return err
			}
			a.notice("removed %s, %s on disk, and from memory %s and the past of %s; the audit log stays, since its chain proves that nothing was removed",
				display.Count(is.Runs, "run"), display.Size(is.Bytes), display.Count(is.Terminals, "exited terminal"), display.Count(is.Pasts, "running one"))
			if is.InHolders > 0 {
				a.notice("the holders of %s still have earlier output, which a later daemon reads again: end these terminals to remove it", display.Count(is.InHolders, "terminal"))
			}
			return nil
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "remove all runs")
	c.Flags().Var(&before, "before", "remove what ended longer than this `TIME` ago, such as 1d")
	return c
}
