package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
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
		RunE: a.withClient(func(c *cobra.Command, client *localclient.Client, args []string) error {
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
				a.printLines(display.Approval(all.Approvals[0], 0))
				return nil
			}
			return a.printApprovals(all.Approvals)
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVarP(&watch, "watch", "w", false, "wait for requests and ask about each")
	return c
}

func approvalCalled(all []localapi.Approval, id string) ([]localapi.Approval, error) {
	for _, x := range all {
		if x.ID == id {
			return []localapi.Approval{x}, nil
		}
	}
	return nil, &localapi.Error{Code: localapi.CodeNotFound, Message: fmt.Sprintf("no such approval request or approval: %q", display.Printable(id, 40)),
		Hint: "tether approvals lists them"}
}

func (a *app) printApprovals(all []localapi.Approval) error {
	if len(all) == 0 {
		a.notice("no pending or active approvals")
		return nil
	}
	w := a.table("ID\tSTATE\tWHO\tUNTIL\tCOMMAND\tIN")
	for _, x := range all {
		until := "-"
		if x.State != localapi.ApprovalExpired {
			until = x.Expires.Local().Format(time.TimeOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, x.State, display.Printable(cmp.Or(x.Who, x.Actor), 60), until, display.Printable(display.ApprovalLine(x), 60), display.Printable(display.Text(x.Cwd, x.CwdBytes), 40))
	}
	return w.Flush()
}

func (a *app) printApproval(x localapi.Approval) { a.printLines(display.Approval(x, display.MaxShown)) }

func (a *app) printLines(lines []string) {
	for _, line := range lines {
		fmt.Fprintln(a.stdout, line)
	}
}
