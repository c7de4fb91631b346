package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
)

func approveCommand(a *app) *cobra.Command {
	var standing time.Duration
	var deny bool
	c := &cobra.Command{
		Use: "approve ID", Short: "approve or deny an agent's request", Args: someArgs(1, 1, "the ID of a request; tether approvals lists them"),
		Long: `approve or deny an agent's request to run a command.

An approval is valid once. With --for it stays valid for that time, for the same
command in the same directory. --deny denies the request; with the ID of an active
approval, --deny ends that approval.`,
		RunE: func(c *cobra.Command, args []string) error {
			if standing < 0 || standing > 0 && standing < time.Second || deny && standing > 0 {
				return usage(c, "--for must be at least 1s and cannot be combined with --deny")
			}
			client, _, err := a.client()
			if err != nil {
				return err
			}
			return a.approve(c.Context(), client, args[0], !deny, standing)
		},
	}
	c.Flags().DurationVar(&standing, "for", 0, "approve the same command for this `TIME`, such as 10m, at most 24h")
	c.Flags().BoolVar(&deny, "deny", false, "deny the request, or end an active approval")
	return c
}

func (a *app) approve(ctx context.Context, client *localclient.Client, id string, allow bool, standing time.Duration) error {
	if !allow && strings.HasPrefix(id, "g-") {
		if err := client.Revoke(ctx, id); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout, "ended approval", id)
		return nil
	}
	done, err := client.Approve(ctx, id, allow, standing)
	if err != nil {
		return err
	}
	switch {
	case !done.Allow:
		fmt.Fprintln(a.stdout, "denied", id)
	case done.Grant != nil:
		fmt.Fprintf(a.stdout, "approved %s until %s (approval %s)\n", id, done.Grant.Expires.Local().Format(time.TimeOnly), done.Grant.ID)
	default:
		fmt.Fprintln(a.stdout, "approved", id)
	}
	return nil
}

// watchApprovals asks about each question until ctx ends or there is no more input.
func (a *app) watchApprovals(ctx context.Context, client *localclient.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lists, failed := make(chan localapi.ApprovalList), make(chan error, 1) // followApprovals sends to both
	go func() { failed <- followApprovals(ctx, client, lists) }()
	lines := make(chan string) // closed by readLines
	go readLines(ctx, a.stdin, lines)
	a.notice("waiting for approval requests; Ctrl-C or Ctrl-D ends this")
	w := approvalWatch{app: a, client: client, passed: map[string]bool{}}
	for {
		var err error
		select {
		case list := <-lists:
			w.list(list)
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			err = w.answer(ctx, strings.ToLower(strings.TrimSpace(line)))
		case err = <-failed:
		case <-ctx.Done():
			return nil
		}
		if err = cmp.Or(err, a.stdout.Err()); err != nil { // nobody answers a question that was not shown
			return err
		}
	}
}

func followApprovals(ctx context.Context, client *localclient.Client, lists chan<- localapi.ApprovalList) error {
	var since *uint64
	for {
		list, err := client.Approvals(ctx, since)
		if err != nil {
			return err
		}
		since = &list.Version
		select {
		case lists <- list:
		case <-ctx.Done():
			return nil
		}
	}
}

func readLines(ctx context.Context, r io.Reader, lines chan<- string) {
	defer close(lines)
	for s := bufio.NewScanner(r); s.Scan(); {
		select {
		case lines <- s.Text():
		case <-ctx.Done():
			return
		}
	}
}

// approvalWatch asks one question at a time. One goroutine uses it.
type approvalWatch struct {
	app     *app
	client  *localclient.Client
	waiting []localapi.Approval
	asked   string          // the question that the person sees, "" for none
	passed  map[string]bool // questions left for later
}

func (w *approvalWatch) list(l localapi.ApprovalList) {
	w.waiting = w.waiting[:0]
	here := false
	for _, x := range l.Approvals {
		if x.State == localapi.ApprovalWaiting && !w.passed[x.ID] {
			w.waiting = append(w.waiting, x)
			here = here || x.ID == w.asked
		}
	}
	if w.asked != "" && !here {
		fmt.Fprintf(w.app.stdout, "\n%s was answered or has expired\n", w.asked)
		w.asked = ""
	}
	w.next()
}

// next asks the oldest question, unless the person sees one already.
func (w *approvalWatch) next() {
	if w.asked != "" || len(w.waiting) == 0 {
		return
	}
	w.asked = w.waiting[0].ID
	w.app.printApproval(w.waiting[0])
	fmt.Fprint(w.app.stdout, "allow? [y]es, once; [t]en minutes; [n]o; [l]ater: ")
}

func (w *approvalWatch) answer(ctx context.Context, line string) error {
	id := w.asked
	if id == "" {
		return nil
	}
	var err error
	switch line {
	case "y", "yes":
		err = w.app.approve(ctx, w.client, id, true, 0)
	case "t", "ten":
		err = w.app.approve(ctx, w.client, id, true, 10*time.Minute)
	case "n", "no":
		err = w.app.approve(ctx, w.client, id, false, 0)
	case "l", "later":
	default:
		fmt.Fprint(w.app.stdout, "y, t, n or l: ")
		return nil
	}
	w.asked, w.passed[id] = "", true
	if e, ok := err.(*localapi.Error); ok && e.Code == localapi.CodeNotFound {
		w.app.notice("%s", e.Message)
		err = nil
	}
	w.waiting = w.waiting[min(1, len(w.waiting)):]
	w.next()
	return err
}
