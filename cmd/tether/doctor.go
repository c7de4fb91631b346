package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/local"
	"tether/cmd/tether/internal/display"
	"tether/installer"
	"tether/internal/version"
	"tether/platform/dirs"
	"tether/platform/keyring"
	"tether/platform/limits"
	"tether/platform/proc"
	"tether/platform/pty"
)

// doctorWithin bounds one check, and thereby all of them, since they run concurrently. doctorPatience is how long the daemon may take to
// answer before it counts as stuck; it is generous because the machine may have other problems.
const (
	doctorWithin   = 20 * time.Second
	doctorPatience = 10 * time.Second
)

func doctorCommand(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "check for problems and suggest fixes", Args: noArgs,
		Long: `check for problems and suggest fixes.

Each check has a result: ok, warn (it works, but not at its best), fail, or skip (not
applicable to this system or state). The exit status is 1 if a check fails. The checks
change nothing, but they create and remove a test file in tether's directories and a
test entry in the keyring, and connect to the paired hosts with their tokens.`,
		Example: "  tether doctor\n  tether doctor --json | jq '.checks[] | select(.result != \"ok\")'",
		RunE: func(c *cobra.Command, _ []string) error {
			done := a.progress(c.Context(), "checking hosts and services")
			all := a.examine(c.Context())
			done()
			if asJSON {
				if err := a.printJSON(all); err != nil {
					return err
				}
			} else if err := a.printChecks(all.Checks); err != nil {
				return err
			}
			if all.Failed > 0 {
				return exitCode(local.ExitFailure)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// checkResult is the result of a check.
type checkResult string

const (
	checkOK   checkResult = "ok"
	checkWarn checkResult = "warn"
	checkFail checkResult = "fail"
	checkSkip checkResult = "skip"
)

// check is one check and its finding.
type check struct {
	Name   string      `json:"name"`
	Result checkResult `json:"result"`
	Reason string      `json:"reason"`        // the finding
	Fix    string      `json:"fix,omitempty"` // the suggested fix; not for ok and skip
	Doc    string      `json:"doc,omitempty"` // the documentation page
}

// examination is the output of doctor --json.
type examination struct {
	SchemaVersion int     `json:"schema_version"`
	Version       string  `json:"version"`
	Checks        []check `json:"checks"`
	Failed        int     `json:"failed"`
}

// patient is the machine under examination, with the facts known before the checks.
type patient struct {
	dirs   dirs.Dirs
	client *local.Client
	status local.Status
	down   error // why there is no status

	// The probes of the machine. Tests replace them.
	free    func(dir string) (uint64, error)
	files   func() (uint64, error)
	root    func() bool
	console func() (string, error)
	login   func(context.Context) ([]string, error)
	keyring *keyring.Keyring
	service func(context.Context) (installer.Status, error)
	proxy   func(*url.URL) *url.URL
}

// newPatient returns this machine, before the first probe.
func newPatient(d dirs.Dirs, client *local.Client) *patient {
	return &patient{dirs: d, client: client, free: limits.Free, files: limits.Files, root: proc.Root, console: pty.Console, login: askLogin,
		keyring: keyring.System(), service: installer.New(false).Status, proxy: proxyOf}
}

// examine runs all checks.
func (a *app) examine(ctx context.Context) examination {
	e := examination{SchemaVersion: local.SchemaVersion, Version: version.Text()}
	client, d, err := a.client()
	if err != nil {
		e.Checks = []check{{Name: "directories", Result: checkFail, Reason: err.Error(), Fix: "set the variable named above, or TETHER_HOME", Doc: "docs/PLATFORMS.md"}}
		e.Failed = 1
		return e
	}
	defer client.Close()
	p := newPatient(d, client)
	asked, cancel := context.WithTimeout(ctx, doctorPatience)
	p.status, p.down = client.Status(asked)
	cancel()
	checks := []func(context.Context, *patient) []check{
		checkConfig, checkDirectories, checkWriting, checkDisk, checkFiles, checkPTY, checkRoot, checkKeyring, checkDaemon, checkSockets, checkDegraded, checkService,
		checkShell, checkLogin, checkHosts, checkAgents, checkSandbox,
	}
	found := make([][]check, len(checks))
	var wg sync.WaitGroup
	for i, look := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, doctorWithin)
			defer cancel()
			found[i] = look(ctx, p)
		})
	}
	wg.Wait()
	for _, some := range found {
		for _, c := range some {
			if c.Result == checkFail {
				e.Failed++
			}
			e.Checks = append(e.Checks, c)
		}
	}
	return e
}

func (a *app) printChecks(all []check) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Result, c.Name, display.Printable(c.Reason, 300))
		if c.Fix != "" {
			text := "→ " + display.Printable(c.Fix, 300)
			if c.Doc != "" {
				text += " (" + docPath(c.Doc) + ")"
			}
			fmt.Fprintf(w, "\t\t%s\n", text)
		}
	}
	return w.Flush()
}
