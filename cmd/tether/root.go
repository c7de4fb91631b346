package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/doctor"
	"tether/internal/flagerror"
	"tether/internal/output"
	"tether/internal/textfile"
	"tether/internal/version"
	"tether/platform/dirs"
	"tether/platform/proc"
	"tether/platform/secret"
)

// app is the state that all commands share.
type app struct {
	stdin, stderr *os.File
	stdout        *output.Writer // for all that a command prints
	stdoutFile    *os.File       // the same standard output, for screens, child processes, and protocols, whose ends handle its errors
}

func newApp(stdin, stdout, stderr *os.File) *app {
	return &app{stdin: stdin, stderr: stderr, stdout: output.New(stdout), stdoutFile: stdout}
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "tether",
		Short: "lend terminals of this machine to remote agent hosts",
		Long: `tether runs terminals on this machine and lends them to agent hosts:
a host shows their output, and nobody there can type.

  tether pair wss://host.example   pair with a host, once
  tether run -- npm run dev        run a command in a shared terminal
  tether ls                        list the terminals
  tether                           show a short status, or the first steps

tether config keys lists the keys of the configuration.`,
		Version:       version.Text(),
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
		Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		RunE: func(c *cobra.Command, _ []string) error { return a.bare(c) },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if given := c.Flags().Args(); c.HasSubCommands() && len(given) > 0 {
			return unknownCommand(c, given) // the words before the flag are wrong
		}
		if near := nearFlag(c, err); near != "" {
			return usage(c, "%v; did you mean --%s?", err, near)
		}
		return usage(c, "%s", flagerror.Text(err))
	})
	root.Flags().Bool("version", false, "print the version")
	root.SetVersionTemplate("tether {{.Version}}\n") // as tether version prints it
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	addGroups(root, a)
	addBrought(root)
	addCompletions(root, a)
	addExamples(root, "")
	return root
}

// addGroups adds all commands, in the order of tether --help.
func addGroups(root *cobra.Command, a *app) {
	cobra.EnableCommandSorting = false
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"terminals", "Terminals", []*cobra.Command{runCommand(a), shellCommand(a), lsCommand(a), uiCommand(a), attachCommand(a), readCommand(a), commandsCommand(a), problemsCommand(a), fetchCommand(a), runsCommand(a), searchCommand(a), diffCommand(a), verdictCommand(a), forgetCommand(a),
			killCommand(a), adoptCommand(a), unadoptCommand(a), waitCommand(a), eventsCommand(a), onCommand(a), portsCommand(a), recordCommand(a), playCommand(a), upCommand(a), downCommand(a), restartCommand(a), notifyCommand(a)}},
		{"hosts", "Hosts and sharing", []*cobra.Command{pairCommand(a), unpairCommand(a), loginCommand(a), logoutCommand(a), hostCommand(a), lendCommand(a), unlendCommand(a), shareCommand(a), sharesCommand(a), unshareCommand(a), watchCommand(a), demoCommand(a)}},
		{"agents", "Agents on this machine", []*cobra.Command{mcpCommand(a), acpCommand(a), sandboxCommand(a), approvalsCommand(a), approveCommand(a), policyCommand(a),
			auditCommand(a), tokenCommand(a), whoamiCommand(a), setupCommand(a)}},
		{"daemon", "The daemon", []*cobra.Command{statusCommand(a), doctorCommand(a), logsCommand(a), bugreportCommand(a), serviceCommand(a), daemonCommand(a), stopCommand(a), configCommand(a), envCommand(a), updateCommand(a),
			versionCommand(a)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("daemon")
	root.SetCompletionCommandGroupID("daemon")
	root.AddCommand(book().Command())
}

// addBrought adds the commands that cobra provides. It corrects the exit status of wrong
// calls of these and of the manual, which would be 1 or 0.
func addBrought(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(c *cobra.Command, args []string) error {
				topic, left, err := c.Root().Find(args)
				if err != nil {
					return err
				}
				return unknownCommand(topic, left)
			}
		case "manual":
			c.Args = someArgs(1, 1, "a directory")
		case "completion":
			c.Args, c.SuggestionsMinimumDistance = unknownCommand, 2
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range c.Commands() {
				shell.Args = noArgs
			}
		}
	}
}

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(a.stdout, "tether", version.Text())
			return nil
		}}
}

func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := &usageError{message: fmt.Sprintf("unknown command %q", args[0]), hint: c.CommandPath() + " --help lists the commands"}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		e.hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return e
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(c, "unexpected argument %q", args[0])
	}
	return nil
}

// someArgs accepts at least least and at most most arguments; most < 0 means any number.
func someArgs(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least {
			return usage(c, "missing argument: %s", what)
		}
		if most >= 0 && len(args) > most {
			return usage(c, "unexpected argument %q", args[most])
		}
		return nil
	}
}

// client returns a client for the daemon of this user's directories.
func (a *app) client() (*localclient.Client, dirs.Dirs, error) {
	d, err := dirs.Get()
	if err != nil {
		return nil, d, err
	}
	return localclient.New(agent.SocketPath(d)).With(a.token()), d, nil
}

// tokenVar is the environment variable that names the file with one of the person's
// tokens, for scripts.
const tokenVar = "TETHER_TOKEN_FILE"

// token returns the token in that file, or "". A process that an agent has started may be
// unable to read the file, and does not need the token.
func (a *app) token() string {
	path := os.Getenv(tokenVar)
	if path == "" {
		return ""
	}
	data, err := secret.ReadFile(path)
	if err == nil {
		data, err = textfile.Decode(data)
	}
	if err != nil {
		a.notice("%s: %v; continuing without a token", tokenVar, err)
	}
	return strings.TrimSpace(string(data)) // it is empty while tether token create writes to it
}

// ensured returns a client as client does, after starting a daemon if none runs.
func (a *app) ensured(c *cobra.Command) (*localclient.Client, error) {
	client, d, err := a.client()
	if err != nil {
		return nil, err
	}
	return client, a.ensure(c.Context(), client, d)
}

// withClient returns a command's RunE that calls do with a client.
func (a *app) withClient(do func(c *cobra.Command, client *localclient.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		client, _, err := a.client()
		if err != nil {
			return err
		}
		return do(c, client, args)
	}
}

// withDaemon is withClient, but starts a daemon if none runs.
func (a *app) withDaemon(do func(c *cobra.Command, client *localclient.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		client, err := a.ensured(c)
		if err != nil {
			return err
		}
		return do(c, client, args)
	}
}

// ensure starts a daemon for these directories if none runs.
func (a *app) ensure(ctx context.Context, client *localclient.Client, d dirs.Dirs) error {
	if answers(ctx, d) {
		return nil
	}
	return a.start(ctx, client, d, false)
}

// start starts a daemon in the background if none runs, with these arguments. allowRoot
// is --allow-root.
func (a *app) start(ctx context.Context, client *localclient.Client, d dirs.Dirs, allowRoot bool, args ...string) error {
	if err := a.mayBeRoot(ctx, d, allowRoot); err != nil {
		return err
	}
	l, err := launch(d)
	if err != nil {
		return err
	}
	if proc.Root() && os.Getenv(allowRootVar) != "1" && !rootRemembered(d) { // the permission could not be saved
		args = append(args, "--allow-root")
	}
	l.Argv = append(l.Argv, args...)
	defer a.progress(ctx, "starting the daemon")()
	return client.EnsureDaemon(ctx, l)
}

// usageError is a command line that makes no sense.
type usageError struct{ message, hint string }

func (e *usageError) Error() string { return e.message }

func usage(c *cobra.Command, format string, args ...any) error {
	return &usageError{message: strings.TrimPrefix(c.CommandPath(), "tether ") + ": " + fmt.Sprintf(format, args...),
		hint: "see " + c.CommandPath() + " --help"}
}

// hinted is an error of this program, not of the daemon, with a remedy.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

// hintFor returns the remedy for err, or "" if there is none.
func hintFor(err error) string {
	var usage *usageError
	var remote *localapi.Error
	var own *hinted
	var silent *localclient.SilentError
	var locked *agent.LockError
	switch {
	case errors.As(err, &locked):
		return locked.Hint()
	case errors.As(err, &usage):
		return usage.hint
	case errors.As(err, &own):
		return own.hint
	case errors.As(err, &remote):
		return remote.Hint
	case errors.As(err, &silent):
		if d, err := dirs.Get(); err == nil {
			return doctor.StuckFix(d)
		}
	case errors.Is(err, localclient.ErrNotRunning):
		return startHint()
	}
	return ""
}
