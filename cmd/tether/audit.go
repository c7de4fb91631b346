package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent"
	"tether/agent/audit"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/cmd/tether/internal/display"
	"tether/internal/jsonspan"
	"tether/internal/retry"
	"tether/platform/dirs"
)

// auditPoll is the time between two checks of a followed log.
const auditPoll = 250 * time.Millisecond

func auditCommand(a *app) *cobra.Command {
	var asJSON, follow bool
	var last int
	c := &cobra.Command{
		Use: "audit", Short: "show the audit log: commands run, killed, shared and denied", Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		SuggestionsMinimumDistance: 2,
		Long: `show the audit log: commands run, killed, shared and denied.

The log contains no output, no input and no values of variables. It is in the state
directory. A hash links each line to the one before, so that tether audit verify
detects changes.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkRange(c, "--lines", int64(last), 0, maxLines); err != nil {
				return err
			}
			d, err := dirs.Get()
			if err != nil {
				return err
			}
			return a.audit(c.Context(), agent.AuditPath(d), auditFlags{asJSON, follow, last})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the lines of the log, one JSON object each")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new lines")
	c.Flags().IntVarP(&last, "lines", "n", 0, "only the last `N` lines; 0 means all")
	c.AddCommand(auditVerifyCommand(a))
	return c
}

type auditFlags struct {
	asJSON, follow bool
	last           int
}

func (a *app) audit(ctx context.Context, path string, f auditFlags) error {
	tail, err := audit.NewTail(path) // before reading, so that no record is missed; its number tells whether a record was read already
	if err != nil {
		return err
	}
	defer tail.Close()
	newest, err := a.printRecords(lastOf(audit.Read(path), f.last), f.asJSON)
	if err != nil || !f.follow {
		return err
	}
	for {
		records, err := tail.Next()
		if err != nil {
			return err
		}
		for _, r := range records {
			if r.N > newest {
				newest = r.N
				if err := a.printRecord(r, f.asJSON); err != nil {
					return err
				}
			}
		}
		if !retry.Wait(ctx, auditPoll) {
			return nil
		}
	}
}

// lastOf yields the last n records, or all if n is 0.
func lastOf(all iter.Seq2[audit.Record, error], n int) iter.Seq2[audit.Record, error] {
	if n <= 0 {
		return all
	}
	type item struct {
		r   audit.Record
		err error
	}
	return func(yield func(audit.Record, error) bool) {
		var ring []item
		for r, err := range all {
			if ring = append(ring, item{r, err}); len(ring) > 2*n {
				ring = append(ring[:0], ring[len(ring)-n:]...)
			}
		}
		for _, x := range ring[max(0, len(ring)-n):] {
			if !yield(x.r, x.err) {
				return
			}
		}
	}
}

func (a *app) printRecords(all iter.Seq2[audit.Record, error], asJSON bool) (newest int64, err error) {
	for r, bad := range all {
		if bad != nil {
			a.notice("%v", bad)
			continue
		}
		newest = r.N
		if err := a.printRecord(r, asJSON); err != nil {
			return newest, err
		}
	}
	return newest, nil
}

func (a *app) printRecord(r audit.Record, asJSON bool) error {
	if asJSON {
		_, err := fmt.Fprintf(a.stdout, "%s\n", r.Fields)
		return err
	}
	var ev policy.Record
	if err := json.Unmarshal(r.Fields, &ev); err != nil {
		a.notice("record %d: %v", r.N, err)
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %-8s  %s\n", ev.Time.Local().Format("01-02 15:04:05"), ev.Event, recordText(ev))
	return err
}

// recordText returns the text of a record, in one line.
func recordText(ev policy.Record) string {
	var parts []string
	add := func(prefix, s string, most int) {
		if s != "" {
			parts = append(parts, prefix+display.Printable(s, most))
		}
	}
	add("", cmp.Or(ev.Who, ev.Actor), 60)
	add("by ", ev.Door, 10)
	add("", ev.Effect, 10)
	add("", ev.Terminal, 40)
	add("at ", ev.Host, 40)
	add("$ ", cmp.Or(ev.Line, display.ShellLine(jsonspan.Words(ev.Argv, ev.ArgvBytes))), 100)
	add("in ", display.Text(ev.Cwd, ev.CwdBytes), 60)
	add("by rule ", ev.Rule, 40)
	add("", cmp.Or(ev.Detail, ev.Reason), 120)
	if ev.Count > 0 {
		parts = append(parts, fmt.Sprintf("%d events were not written", ev.Count))
	}
	return strings.Join(parts, "  ")
}

func auditVerifyCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "verify", Short: "check the log for changes", Args: noArgs,
		Long: `check the log for changes: edited, removed, added or reordered lines.

A running daemon knows the end of its log, so the check also detects lines cut off at
the end. A program with all your rights can still replace the whole log; to detect
that, keep the printed hash elsewhere. The exit status is 1 if the log was changed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			client, d, err := a.client()
			if err != nil {
				return err
			}
			live, err := liveHead(c.Context(), client)
			if err != nil {
				return err
			}
			report, err := audit.Verify(agent.AuditPath(d), live)
			if err != nil {
				return err
			}
			return a.printReport(report, live != nil, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// liveHead asks the daemon for the end of the log. It returns nil if no daemon runs.
func liveHead(ctx context.Context, client *localclient.Client) (*audit.Head, error) {
	head, err := client.AuditHead(ctx)
	if errors.Is(err, localclient.ErrNotRunning) {
		return nil, nil
	}
	return &head, err
}

// verified is the output of audit verify --json.
type verified struct {
	SchemaVersion int  `json:"schema_version"`
	Intact        bool `json:"intact"`
	Daemon        bool `json:"daemon"` // it was asked for the log's end
	audit.Report
}

func (a *app) printReport(r audit.Report, asked, asJSON bool) error {
	intact := len(r.Problems) == 0
	var status error
	if !intact {
		status = exitCode(localapi.ExitFailure)
	}
	if asJSON {
		return errors.Join(a.printJSON(verified{localapi.SchemaVersion, intact, asked, r}), status)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(a.stdout, display.Printable(p.String(), 0))
	}
	fmt.Fprintln(a.stdout, r.Summary())
	return status
}
