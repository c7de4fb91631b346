package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/ports"
	"tether/cmd/tether/internal/display"
	"tether/internal/jsonspan"
)

// completeWithin is how long a completion may take after Tab.
const completeWithin = time.Second

// completedRuns bounds the runs that a completion offers.
const completedRuns = 200

// completer asks the daemon for the candidates for a word.
type completer func(context.Context, *localclient.Client) ([]string, error)

// addCompletions lets shells complete the arguments that a command's usage names:
// terminals (ID), declared terminals and hosts (NAME), approval requests and runs. It
// also lets them complete the hosts of --host, the runs of --run, and --port auto.
func addCompletions(root *cobra.Command, a *app) {
	for _, c := range root.Commands() {
		addCompletions(c, a)
		_, args, _ := strings.Cut(c.Use, " ")
		switch {
		case c.ValidArgsFunction != nil:
		case slices.Contains([]string{"runs", "diff", "verdict", "forget"}, c.Name()):
			c.ValidArgsFunction = a.completing(runNames)
		case slices.Contains([]string{"up", "down", "restart"}, c.Name()):
			c.ValidArgsFunction = a.completing(declaredNames)
		case c.Name() == "approve":
			c.ValidArgsFunction = a.completing(questionNames)
		case strings.HasPrefix(args, "ID"), strings.HasPrefix(args, "[ID"):
			c.ValidArgsFunction = a.completing(terminalNames)
		case c.HasParent() && c.Parent().Name() == "notify" && args != "":
			c.ValidArgsFunction = a.completing(receiverNames)
		case strings.HasPrefix(args, "NAME"), c.Name() == "watch":
			c.ValidArgsFunction = a.completing(hostNames)
		}
		for name, of := range map[string][]string{"run": {"read", "problems"}, "with": {"diff"}, "name": {"search"}} {
			if slices.Contains(of, c.Name()) {
				_ = c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
					return a.candidates(c, runNames, nil), cobra.ShellCompDirectiveNoFileComp
				}) // the flag exists
			}
		}
		if f := c.Flags().Lookup("port"); f != nil && f.Value.Type() == "string" {
			_ = c.RegisterFlagCompletionFunc("port", cobra.FixedCompletions([]cobra.Completion{ports.Auto}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
		}
		if c.Flags().Lookup("host") != nil {
			_ = c.RegisterFlagCompletionFunc("host", a.completing(hostNames)) // cannot fail: the flag exists
		}
	}
}

// completing returns a function that asks the daemon for candidates, if one runs. A
// completion never starts a daemon.
func (a *app) completing(names completer) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		if !strings.Contains(c.Use, "…") && len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.candidates(c, names, given), cobra.ShellCompDirectiveNoFileComp
	}
}

// candidates asks for those that are not given yet.
func (a *app) candidates(c *cobra.Command, names completer, given []string) []string {
	client, _, err := a.client()
	if err != nil {
		return nil
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), completeWithin)
	defer cancel()
	all, err := names(ctx, client)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(s string) bool {
		name, _, _ := strings.Cut(s, "\t")
		return slices.Contains(given, name)
	})
}

// terminalNames returns the ids and the unambiguous names, each with its command.
func terminalNames(ctx context.Context, client *localclient.Client) ([]string, error) {
	l, err := client.List(ctx)
	count := map[string]int{}
	for _, t := range l.Terminals {
		count[t.Name]++
	}
	var all []string
	for _, t := range l.Terminals {
		what := "\t" + display.Printable(display.ShellLine(jsonspan.Words(t.Command, t.CommandBytes)), 40)
		if t.Name != "" && count[t.Name] == 1 && t.Name == display.Printable(t.Name, 0) {
			all = append(all, t.Name+what)
		}
		all = append(all, t.ID+what)
	}
	return all, err
}

// runNames returns the names and ids of the newest runs, each with its command.
func runNames(ctx context.Context, client *localclient.Client) (all []string, err error) {
	named := map[string]bool{}
	_, err = client.Runs(ctx, localclient.RunOptions{Max: completedRuns}, func(r *localapi.Run) {
		what := "\t" + display.Printable(r.Line, 40)
		if r.Name != "" && !named[r.Name] && r.Name == display.Printable(r.Name, 0) {
			named[r.Name] = true
			all = append(all, r.Name+what)
		}
		all = append(all, r.ID+what)
	})
	return all, err
}

func declaredNames(ctx context.Context, client *localclient.Client) (all []string, err error) {
	l, err := client.List(ctx)
	for _, d := range l.Declared {
		all = append(all, d.Name+"\t"+d.State)
	}
	return all, err
}

func hostNames(ctx context.Context, client *localclient.Client) (all []string, err error) {
	s, err := client.Status(ctx)
	for _, h := range s.Hosts {
		all = append(all, h.Name+"\t"+h.State)
	}
	return all, err
}

func questionNames(ctx context.Context, client *localclient.Client) (all []string, err error) {
	l, err := client.Approvals(ctx, nil)
	for _, q := range l.Approvals {
		all = append(all, q.ID+"\t"+q.State+" "+display.Printable(display.ApprovalLine(q), 40))
	}
	return all, err
}
