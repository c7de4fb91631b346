package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/audit"
	"tether/host"
	"tether/host/rights"
	"tether/internal/version"
	"tether/platform/secret"
)

// openAudit opens the audit log of the host. If a requested log cannot be written, the
// host does not start.
func (s *settings) openAudit(o *host.Options) (*audit.Log, error) {
	dir := filepath.Dir(s.auditLog)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := secret.Dir(dir); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
	}
	record := audit.New(audit.Options{Path: s.auditLog})
	if err := record.Append(rights.AuditEvent{At: time.Now().UTC(), Type: "started", Detail: "tether-host " + version.Text()}); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	log := o.Logger
	o.Audit = func(ev rights.AuditEvent) {
		if err := record.Append(ev); err != nil {
			log.Error().Err(err).Msg("audit log")
		}
	}
	return record, nil
}

func auditCommand(stdout io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use: "audit", Short: "check the host's audit log",
		SuggestionsMinimumDistance: 2, Args: subcommand, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(auditVerify(stdout))
	return c
}

func auditVerify(stdout io.Writer) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "verify FILE", Short: "check the log for changes",
		Long: `Checks the log that tether-host --audit-log FILE writes for edited, removed, added or reordered lines. It reads the older
files FILE.1 to FILE.3, too.

FILE.head, which the host keeps beside the log, knows its end. A program that can write all of these files can still replace the whole
log; to detect that, keep the printed hash elsewhere. The exit status is 1 if the log was changed.`,
		Args: exactly(1, "the file of the log"),
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := audit.Verify(args[0], nil)
			if err == nil && report.Records == 0 && len(report.Problems) == 0 {
				_, err = os.Stat(args[0]) // a name that is wrong is no empty log
			}
			if err != nil {
				return fmt.Errorf("audit log: %w", err)
			}
			return printVerified(stdout, report, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// verified is the output of audit verify --json.
type verified struct {
	SchemaVersion int  `json:"schema_version"`
	Intact        bool `json:"intact"`
	audit.Report
}

// printVerified prints the report. Its error says that the log is not intact.
func printVerified(stdout io.Writer, r audit.Report, asJSON bool) error {
	intact := len(r.Problems) == 0
	var err error
	switch {
	case asJSON:
		err = printJSON(stdout, verified{1, intact, r})
	case intact:
		fmt.Fprintln(stdout, r.Summary())
	default:
		for _, p := range r.Problems {
			fmt.Fprintln(stdout, printable(p.String()))
		}
	}
	if err == nil && !intact {
		err = errors.New(r.Summary())
	}
	return err
}
