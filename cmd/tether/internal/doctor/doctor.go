// Package doctor examines this machine for the command tether doctor: each check names
// its finding and suggests a fix.
package doctor

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/installer"
	"tether/internal/version"
	"tether/platform/dirs"
	"tether/platform/keyring"
	"tether/platform/limits"
	"tether/platform/notify"
	"tether/platform/proc"
	"tether/platform/pty"
)

// checkTimeout bounds one check, and thereby all checks, because they run concurrently.
// daemonTimeout is how long the daemon may take to answer before it counts as stuck; it
// is generous because the machine may have other problems.
const (
	checkTimeout  = 20 * time.Second
	daemonTimeout = 10 * time.Second
)

// Result is the result of a check: ok, warn (it works, but not at its best), fail, or
// skip (not applicable to this system or state).
type Result string

// The results, as printed.
const (
	OK   Result = "ok"
	Warn Result = "warn"
	Fail Result = "fail"
	Skip Result = "skip"
)

// Check is one check and its finding.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Reason string `json:"reason"`
	Fix    string `json:"fix,omitempty"`
	Doc    string `json:"doc,omitempty"`
}

// Examination is the output of doctor --json.
type Examination struct {
	SchemaVersion int     `json:"schema_version"`
	Version       string  `json:"version"`
	Checks        []Check `json:"checks"`
	Failed        int     `json:"failed"`
}

// Machine describes this machine, as far as the command line knows it.
type Machine struct {
	Dirs      dirs.Dirs
	Client    *localclient.Client                         // asks the daemon; Examine does not close it
	Config    func() (path string, err error)             // reads the configuration file; the error says where it is wrong
	Unknown   string                                      // describes unknown variables in the environment; "" if there are none
	Container string                                      // the kind of container that this process runs in; "" if it runs in none
	Agents    func() (configured, other, broken []string) // installed agents: configured for tether, not configured, unreadable (and why)
	Executors func() (configured, other, broken []string) // likewise, the programs by which agents that run elsewhere use this machine
}

// machine is the machine under examination, with the facts known before the checks.
type machine struct {
	Machine
	status localapi.Status
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
	desktop func() bool
	told    func(context.Context) (localapi.Notifications, error)
}

// newMachine returns the machine before the first probe.
func newMachine(m Machine) *machine {
	told := func(ctx context.Context) (localapi.Notifications, error) { return m.Client.Notifications(ctx, true) }
	return &machine{Machine: m, told: told, free: limits.Free, files: limits.Files, root: proc.Root, console: pty.Console, login: askLogin,
		keyring: keyring.System(), service: installer.New(false).Status, proxy: proxyOf, desktop: notify.Available}
}

// WithoutDirectories returns the examination of a machine whose directories are unknown
// because of err. Nothing else can be checked there.
func WithoutDirectories(err error) Examination {
	return conclude([]Check{{Name: "directories", Result: Fail, Reason: err.Error(), Fix: "set the variable named above, or TETHER_HOME", Doc: "docs/PLATFORMS.md"}})
}

// Examine asks the daemon for its status and then runs all checks concurrently. It
// returns within 30 seconds, or soon after ctx ends, unless a file system does not
// answer. The checks create and remove a test file and a test entry in the keyring, run
// test programs and connect to the paired hosts; they change nothing else.
func Examine(ctx context.Context, known Machine) Examination {
	m := newMachine(known)
	asked, cancel := context.WithTimeout(ctx, daemonTimeout)
	m.status, m.down = m.Client.Status(asked)
	cancel()
	checks := []func(context.Context, *machine) []Check{
		checkConfig, checkDirectories, checkWriting, checkDisk, checkFiles, checkPTY, checkRoot, checkKeyring, checkDaemon, checkSockets, checkDegraded, checkHistory, checkNotify, checkService,
		checkShell, checkLogin, checkHosts, checkAgents, checkExecutors, checkSandbox,
	}
	found := make([][]Check, len(checks))
	var wg sync.WaitGroup
	for i, look := range checks {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			found[i] = look(ctx, m)
		})
	}
	wg.Wait()
	return conclude(slices.Concat(found...))
}

// conclude counts the failures.
func conclude(checks []Check) Examination {
	e := Examination{SchemaVersion: localapi.SchemaVersion, Version: version.Text(), Checks: checks}
	for _, c := range checks {
		if c.Result == Fail {
			e.Failed++
		}
	}
	return e
}

// Print writes the checks and the suggested fixes to out, as a table.
func Print(out io.Writer, checks []Check) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Result, c.Name, display.Printable(c.Reason, 300))
		if c.Fix != "" {
			text := "→ " + display.Printable(c.Fix, 300)
			if c.Doc != "" {
				text += " (" + pagePath(c.Doc) + ")"
			}
			fmt.Fprintf(w, "\t\t%s\n", text)
		}
	}
	return w.Flush()
}

// StuckFix returns the remedy for a daemon that does not answer, so that it cannot be
// asked to hand over either.
func StuckFix(d dirs.Dirs) string {
	pid := agent.Running(d)
	if pid == 0 {
		return "see tether logs"
	}
	return fmt.Sprintf("it is process %d; to replace it: tether daemon --replace --force --background (terminals keep running). See also: tether logs", pid)
}

// pagePath returns the installed path of a page of docs/: where Linux packages put it, or
// beside the program, where archives and the installer for Windows put it. If the page is
// in neither place, pagePath returns its path in the repository.
func pagePath(page string) string {
	self, err := os.Executable()
	if err != nil {
		return page
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	return pageIn(filepath.Dir(self), page)
}

// pageIn is pagePath for a program in the directory dir.
func pageIn(dir, page string) string {
	for _, path := range []string{filepath.Join(dir, "..", "share", "doc", "tether", filepath.FromSlash(page)), filepath.Join(dir, filepath.FromSlash(page))} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return page
}
