package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/hosts"
	"tether/cmd/tether/internal/display"
	"tether/installer"
	"tether/internal/version"
	"tether/platform/dirs"
	"tether/platform/keyring"
	"tether/platform/notify"
	"tether/platform/proc"
)

func daemonCommand(a *app) *cobra.Command {
	var f daemonFlags
	c := &cobra.Command{
		Use: "daemon", Short: "run the daemon in the foreground", Args: noArgs,
		Long: `run the daemon in the foreground, until SIGTERM or tether stop.

tether run and tether pair start a daemon in the background if none is running.

A signal ends the daemon but not its terminals: the next daemon resumes them with all
their output. --replace does the same after an upgrade: it asks the running daemon to
hand over its terminals and exit. tether stop also ends the terminals.

--set overrides keys of the configuration, as in --set terminals.log_bytes=8MiB;
tether config keys lists the keys.`,
		RunE: func(c *cobra.Command, _ []string) error {
			f.notify = installer.Notifier()
			d, err := dirs.Get()
			if err != nil {
				return err
			}
			if err := a.mayBeRoot(c.Context(), d, f.allowRoot); err != nil { // before the running daemon is replaced
				return err
			}
			if f.replace || f.background {
				return a.replace(c, f)
			}
			return a.daemon(c.Context(), f)
		},
	}
	c.Flags().BoolVar(&f.allowRoot, "allow-root", false, "allow the daemon to run as root, now and in the future, and to share terminals by default; not needed in a container")
	c.Flags().StringVar(&f.level, "log-level", "", "the log `LEVEL`: debug, info, warn or error; overrides the configuration")
	c.Flags().BoolVar(&f.replace, "replace", false, "replace the running daemon; its terminals keep running")
	c.Flags().BoolVar(&f.force, "force", false, "with --replace: replace it even if it does not answer")
	c.Flags().BoolVar(&f.background, "background", false, "run in the background and return when the daemon is ready")
	setFlag(c, &f.settings)
	return c
}

// daemonFlags say how to run a daemon.
type daemonFlags struct {
	allowRoot, replace, force, background bool
	level                                 string
	settings                              sets
	notify                                func(state string) error // tells the service manager a state
	arrived                               func()                   // called when the daemon is ready after a replacement; nil otherwise
}

func (a *app) daemon(ctx context.Context, f daemonFlags) error {
	d, err := dirs.Get()
	if err != nil {
		return err
	}
	if err := a.mayBeRoot(ctx, d, f.allowRoot); err != nil {
		return err
	}
	daemon, err := a.newDaemon(d, f)
	if err != nil {
		return err
	}
	log.SetOutput(io.Discard) // net/http tells it what servers in terminals have sent unasked
	err = daemon.Run(ctx)
	if daemon.Kept() > 0 {
		a.notice("%s", display.Kept(daemon.Kept()))
	}
	if running, ok := errors.AsType[*agent.RunningError](err); ok {
		return &hinted{running, "tether status shows it; tether stop ends it"}
	}
	return err
}

// newDaemon returns a daemon with the configuration and the flags. An error says why it
// could not start with them. The daemon's programs are not those of an agent that has
// started it, so this process drops the agent's marks.
func (a *app) newDaemon(d dirs.Dirs, f daemonFlags) (*agent.Agent, error) {
	for _, mark := range proc.VendorMarks() {
		if err := os.Unsetenv(mark.Var); err != nil {
			return nil, err
		}
	}
	_, settings, err := loadConfig(f.settings...)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, which holds terminals: %w", err)
	}
	limitMemory(settings)
	daemon, err := agent.New(agent.Config{Dirs: d, Notify: notify.Send, AskDesktop: notify.Ask, Version: version.Text(), AllowRoot: true, Settings: &settings, LogLevel: f.level, Over: append(fromEnv(), f.settings...),
		Holder: agent.Program{Path: self, Argv: []string{"tether", holderVerb}}, Reader: []string{self, readerVerb}, Replace: f.replace, Secrets: secrets(),
		Ready: func() { a.ready(f) }})
	if err != nil {
		return nil, &usageError{message: "daemon: " + err.Error(), hint: "see tether daemon --help"}
	}
	return daemon, nil
}

// secrets returns the places where the daemon may keep secrets.
func secrets() hosts.Secrets {
	s := hosts.Secrets{Keyring: keyring.System()}
	if os.Getenv(dirs.HomeVar) != "" {
		s.File = dirs.HomeVar + " is set"
	}
	return s
}

// ready reports that the daemon is ready: on standard error, to a waiting replacement and
// to the service manager.
func (a *app) ready(f daemonFlags) {
	fmt.Fprintln(a.stderr, "tether: ready, process", os.Getpid())
	if f.arrived != nil {
		f.arrived()
	}
	if err := f.notify("READY=1"); err != nil {
		fmt.Fprintln(a.stderr, "tether:", err)
	}
}

// overhead is the memory of a daemon besides the output that it keeps, in bytes. It is
// for the program itself, its terminals and some garbage. Many floods of output at once
// need 30 MiB of it.
const overhead = 48 << 20

// limitMemory makes the garbage collector work harder near the configured amount, where
// it would otherwise let the heap grow to twice the kept amount. A GOMEMLIMIT in the
// environment has priority.
func limitMemory(c config.Config) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(int64(c.Terminals.TotalLogBytes) + overhead)
	}
}
