package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/local"
)

// completeWithin is how long a person waits who presses Tab.
const completeWithin = time.Second

// addCompletions has shells complete what a command's arguments name: terminals where its usage says ID, declared ones where it
// says NAME of up, down and restart.
func addCompletions(root *cobra.Command, a *app) {
	for _, c := range root.Commands() {
		_, args, _ := strings.Cut(c.Use, " ")
		switch {
		case c.ValidArgsFunction != nil:
		case slices.Contains([]string{"up", "down", "restart"}, c.Name()):
			c.ValidArgsFunction = a.completing(declaredNames)
		case strings.HasPrefix(args, "ID") && c.Name() != "approve":
			c.ValidArgsFunction = a.completing(terminalNames)
		}
	}
}

// completing asks the daemon, if one runs; a shell starts none by Tab.
func (a *app) completing(names func(local.TerminalList) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		if !strings.Contains(c.Use, "…") && len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		client, _, err := a.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), completeWithin)
		defer cancel()
		list, err := client.List(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(names(list), func(s string) bool {
			name, _, _ := strings.Cut(s, "\t")
			return slices.Contains(given, name)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// terminalNames are the ids, and the names where one stands for one terminal, with what runs there.
func terminalNames(l local.TerminalList) []string {
	count := map[string]int{}
	for _, t := range l.Terminals {
		count[t.Name]++
	}
	var all []string
	for _, t := range l.Terminals {
		what := "\t" + printable(shellLine(t.Command), 40)
		if t.Name != "" && count[t.Name] == 1 && t.Name == printable(t.Name, 0) {
			all = append(all, t.Name+what)
		}
		all = append(all, t.ID+what)
	}
	return all
}

func declaredNames(l local.TerminalList) []string {
	var all []string
	for _, d := range l.Declared {
		all = append(all, d.Name+"\t"+d.State)
	}
	return all
}
