package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/local"
)

func approvalsCommand(a *app) *cobra.Command {
	var asJSON, watch bool
	c := &cobra.Command{
		Use: "approvals [ID]", Short: "list approval requests of agents", Args: someArgs(0, 1, ""),
		Long: `list approval requests of agents, and active approvals.

An unanswered request is denied after a timeout. It stays in the list for a while as
expired; approving it then allows the agent's next attempt. With an ID, the command
shows one request in full. --watch asks you about each new request. tether approve
answers one.`,
		RunE: func(c *cobra.Command, args []string) error {
			client, _, err := a.client()
			if err != nil {
				return err
			}
			if watch {
				return a.watchApprovals(c.Context(), client)
			}
			all, err := client.Approvals(c.Context(), nil)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				if all.Approvals, err = approvalCalled(all.Approvals, args[0]); err != nil {
					return err
				}
			}
			switch {
			case asJSON:
				return a.printJSON(all)
			case len(args) == 1:
				a.printLines(approvalText(all.Approvals[0], 0))
				return nil
			}
			return a.printApprovals(all.Approvals)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "wait for requests and ask about each")
	return c
}

func approvalCalled(all []local.Approval, id string) ([]local.Approval, error) {
	for _, x := range all {
		if x.ID == id {
			return []local.Approval{x}, nil
		}
	}
	return nil, &local.Error{Code: local.CodeNotFound, Message: fmt.Sprintf("no such approval request or approval: %q", printable(id, 40)),
		Hint: "tether approvals lists them"}
}

func (a *app) printApprovals(all []local.Approval) error {
	if len(all) == 0 {
		a.notice("no pending or active approvals")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tWHO\tUNTIL\tCOMMAND\tIN")
	for _, x := range all {
		until := "-"
		if x.State != local.ApprovalExpired {
			until = x.Expires.Local().Format(time.TimeOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, x.State, printable(cmp.Or(x.Who, x.Actor), 60), until, printable(approvalLine(x), 60), printable(x.Cwd, 40))
	}
	return w.Flush()
}

// approvalLine is the command as a person would type it.
func approvalLine(x local.Approval) string {
	if x.Line != "" {
		return x.Line
	}
	return shellLine(x.Argv)
}

// maxShown bounds how much of a command a question shows, in bytes. tether approvals ID shows all of it.
const maxShown = 8 << 10

func (a *app) printApproval(x local.Approval) { a.printLines(approvalText(x, maxShown)) }

func (a *app) printLines(lines []string) {
	for _, line := range lines {
		fmt.Fprintln(a.stdout, line)
	}
}

// approvalText describes a request in full, line by line, so that nothing hides in a long command. most bounds the bytes of the command; 0
// means no bound.
func approvalText(x local.Approval, most int) []string {
	lines := []string{fmt.Sprintf("%s  %s, %s wants to run in %s:", x.ID, x.State, printable(cmp.Or(x.Who, x.Actor), 160), printable(x.Cwd, 0))}
	text := approvalLine(x)
	if most > 0 && len(text) > most {
		text = text[:most] + fmt.Sprintf("\n… and %d more bytes: tether approvals %s", len(text)-most, x.ID)
	}
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, "  | "+printable(line, 0))
	}
	for _, line := range decides(x) {
		lines = append(lines, "  "+printable(line, 0))
	}
	if x.Reason != "" {
		lines = append(lines, fmt.Sprintf("  %s (%s)", printable(x.Reason, 0), printable(x.Rule, 0)))
	}
	return lines
}

// decides lists what else determines the effect of the command, one line each: variables and scripts.
func decides(x local.Approval) []string {
	var lines []string
	for _, setting := range x.Settings {
		lines = append(lines, "setting "+setting)
	}
	for _, s := range x.Scripts {
		if s.Sum == "" {
			lines = append(lines, fmt.Sprintf("script %s, unreadable (%d bytes)", s.Path, s.Size))
			continue
		}
		lines = append(lines, fmt.Sprintf("script %s, current content (%d bytes, sha256 %.12s…)", s.Path, s.Size, s.Sum))
	}
	return lines
}

// approvalBell rings the person's terminal and, if that supports notifications (OSC 9), says which command an agent requests. The daemon
// has masked secrets in the summary, because the terminal passes it to the desktop, where others may see it and programs may store it.
func approvalBell(q local.Approval) string {
	return "\x1b]9;tether: " + printable(q.Summary, 300) + "\x07\x07"
}
