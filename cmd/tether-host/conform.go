package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tether/ahp/client"
	"tether/host/conform"
)

func conformCommand(stdin io.Reader, stdout io.Writer) *cobra.Command {
	var o conform.Options
	var own, other hostURL
	var asJSON bool
	c := &cobra.Command{
		Use: "conform URL", Short: "check whether a host keeps the rules for client-executed terminals",
		Long: `Connects to an agent host as two clients and checks the rules of AHP, then the rules of docs/PROTOCOL.md for client-executed
terminals. The host may be of any make. The check creates terminals and removes them again; if the host runs shells, the check runs a
few commands in one, such as echo.

Where the host keeps audiences apart, the rules for these are checked, too: give the machine's token, and with --observer-token-file that of
a person to whom the machine does not belong.

It prints a table. The exit status is 0 if the host keeps all rules that apply and supports client-executed terminals, else 1.`,
		Args: exactly(1, "the URL of a host, such as wss://host.example"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Timeout < time.Millisecond || o.Timeout > time.Hour {
				return &usageError{fmt.Sprintf("--timeout is %v", o.Timeout), "use 1ms to 1h"}
			}
			for u, to := range map[*hostURL]*client.Endpoint{&own: &o.Endpoint, &other: &o.Observer} {
				if u == &other && other.tokenFile == "" {
					continue
				}
				u.url = args[0]
				token, err := u.token(stdin)
				if err == nil {
					to.Token = token
					to.URL, err = u.at("", false, token != "")
				}
				if err != nil {
					return err
				}
			}
			return checkHost(c.Context(), o, asJSON, stdout)
		},
	}
	f := c.Flags()
	f.StringVar(&own.tokenFile, "token-file", "", "read the token of the lending client from `FILE`; - is standard input")
	f.StringVar(&other.tokenFile, "observer-token-file", "", "read the token of the observing client from `FILE`; default: the same token")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Second, "the time limit for each step")
	f.BoolVar(&o.Plain, "plain", false, "check only the rules of AHP for all hosts")
	f.BoolVar(&o.Assume, "assume-client-terminals", false, "check all rules even if the host does not announce client-executed terminals; it may start shells instead")
	f.BoolVar(&asJSON, "json", false, "as JSON")
	return c
}

// checkHost checks the host and prints the result. Its error says whether the host
// violates rules.
func checkHost(ctx context.Context, o conform.Options, asJSON bool, stdout io.Writer) error {
	report, err := conform.Run(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(stdout, report)
	} else {
		printReport(stdout, report)
	}
	switch {
	case err != nil:
		return err
	case report.Failed():
		return errors.New("the host violates rules")
	case !o.Plain && !o.Assume && !report.Marker:
		return errors.New("the host takes no terminals of other machines")
	}
	return nil
}

func printReport(stdout io.Writer, report *conform.Report) {
	name := cmp.Or(report.Server, "unnamed host")
	fmt.Fprintf(stdout, "%s, AHP %s\n\n", printable(name), printable(report.Version))
	w := newTable(stdout, "FOR\tRULE\tRESULT\tWHY")
	count := map[conform.Verdict]int{}
	for _, r := range report.Results {
		count[r.Verdict]++
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Group, r.Rule, r.Verdict, printable(r.Why))
	}
	w.Flush()
	fmt.Fprintf(stdout, "\n%d passed, %d failed, %d not applicable\n", count[conform.Pass], count[conform.Fail], count[conform.Skip])
}
