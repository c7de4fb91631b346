package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/attach"
	"tether/platform/proc"
	"tether/platform/shell"
	"tether/platform/tty"
)

func shellCommand(a *app) *cobra.Command {
	r := localapi.SpawnRequest{Shell: true}
	var detach, window, login bool
	c := &cobra.Command{
		Use: "shell [flags] [-- SHELL…]", Short: "start your login shell in a terminal shared with the default host",
		Long: `start your login shell in a terminal shared with the default host.

The shell reports the start and end of each command, with its line and exit code, to
everyone who watches. Your own start-up files and settings are not changed.

--window is for the settings of terminal programs, which tether setup terminal writes:
the shell runs as in a window without tether, silently, with no key for tether, and ends
with the window. It is lent to nobody, unless --host names a host. If no daemon runs, or
this is a tether terminal already, the shell runs without tether.`,
		Example: "  tether shell --name mine\n  tether shell --window --login",
		Args:    someArgs(0, -1, "a shell"),
		RunE: func(c *cobra.Command, argv []string) error {
			r.Command = argv
			if window {
				return a.window(c.Context(), r, login)
			}
			if len(argv) > 1 {
				return usage(c, "unexpected argument %q", argv[1])
			}
			return a.run(c, r, detach)
		},
	}
	spawnFlags(c, &r, &detach)
	c.Flags().BoolVar(&window, "window", false, "be the shell of a terminal program's window")
	c.Flags().BoolVar(&login, "login", false, "with --window: as a login shell; without it the shell is one always")
	return c
}

// windowArgs returns the shell's command and whether it is a login shell, if the
// arguments are those of a window's shell and have no other flags.
func windowArgs(args []string) (argv []string, login, ok bool) {
	if len(args) < 2 || args[0] != "shell" || args[1] != "--window" {
		return nil, false, false
	}
	rest := args[2:]
	if len(rest) > 0 && rest[0] == "--login" {
		login, rest = true, rest[1:]
	}
	if len(rest) > 0 && rest[0] == "--" {
		return rest[1:], login, true
	}
	return nil, login, len(rest) == 0
}

// windowTimeout bounds the time in which the daemon starts a window's shell. A person who
// opens a window wants to type.
const windowTimeout = 3 * time.Second

// window runs a shell in a terminal until both end, or in place of this process where
// that cannot be.
func (a *app) window(ctx context.Context, r localapi.SpawnRequest, login bool) error {
	if len(r.Command) == 0 || strings.HasPrefix(r.Command[0], "-") { // what a terminal program adds, such as -c
		r.Command = slices.Insert(r.Command, 0, shell.Login())
	}
	argv := slices.Clone(r.Command)
	argv[0] = shell.Find(argv[0])
	if r.Shell = login; !login {
		r.Command = argv
	}
	if err := a.windowTerminal(ctx, r); !errors.Is(err, errNoTerminal) {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if login {
		argv[0] = "-" + filepath.Base(path)
	}
	status, err := proc.Become(path, argv)
	if err != nil {
		return err
	}
	return exitCode(status)
}

// errNoTerminal says that a window's shell was not started.
var errNoTerminal = errors.New("no terminal")

// windowTerminal starts the request's shell in a terminal and attaches to it. If that
// cannot be, it returns errNoTerminal, whatever the reason: it is the person's only
// window for finding out.
func (a *app) windowTerminal(ctx context.Context, r localapi.SpawnRequest) error {
	if !tty.Is(a.stdin) || !tty.Is(a.stdoutFile) || os.Getenv(proc.TagVar) != "" || os.Getenv(proc.AgentVar) != "" {
		return errNoTerminal
	}
	client, _, err := a.client()
	if err != nil {
		return errNoTerminal
	}
	defer client.Close()
	if r.Cwd, err = directory(r.Cwd); err != nil {
		return errNoTerminal
	}
	if r.LendTo == nil {
		r.LendTo = []string{} // nobody, not the default host
	}
	if own := proc.OwnLimits(); !own.IsZero() {
		r.Limits = &own
	}
	r.Env, r.Attaches = environment(os.Environ()), true
	r.Cols, r.Rows = a.size()
	starting, cancel := context.WithTimeout(ctx, windowTimeout)
	defer cancel()
	t, err := client.Spawn(starting, r)
	if err != nil {
		return errNoTerminal
	}
	err = a.attachTo(ctx, client, t.ID, localclient.AttachOptions{FromStart: true}, attach.Options{Owns: true, Window: true})
	if _, ok := errors.AsType[*cannotAttach](err); ok {
		_, _ = client.Kill(ctx, t.ID) // nobody sees it
		return errNoTerminal
	}
	return err
}
