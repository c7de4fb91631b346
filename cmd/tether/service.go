package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/installer"
	"tether/platform/dirs"
)

func serviceCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use: "service", Short: "start the daemon at login or at boot", SuggestionsMinimumDistance: 2,
		Long: `start the daemon at login or at boot.

  tether service install                          at login, without an administrator
  sudo tether service install --system --user me  at boot

tether run uses the same daemon. Its terminals keep running when the daemon stops,
restarts, crashes or is upgraded; the next daemon resumes them.`,
		Args: func(c *cobra.Command, args []string) error { return unknownCommand(c, args) },
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(serviceInstallCommand(a), serviceUninstallCommand(a), serviceStatusCommand(a), serviceLogsCommand(a), serviceLogonCommand(a), serviceRunCommand(a),
		serviceVerb(a, "start", "start the daemon", installer.Manager.Start),
		serviceVerb(a, "stop", "stop the daemon; its terminals keep running", installer.Manager.Stop),
		serviceVerb(a, "restart", "restart the daemon; its terminals keep running", installer.Manager.Restart))
	return c
}

// systemFlag adds the flag --system.
func systemFlag(c *cobra.Command, system *bool) {
	c.Flags().BoolVar(system, "system", false, "the system service instead of your user service")
}

// serviceVerb returns a command without arguments of its own.
func serviceVerb(a *app, name, short string, do func(installer.Manager, context.Context) error) *cobra.Command {
	var system bool
	c := &cobra.Command{Use: name, Short: short, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := mayManage(system); err != nil {
				return err
			}
			defer a.progress(c.Context(), "waiting for the service")()
			return explained(do(installer.New(system), c.Context()))
		}}
	systemFlag(c, &system)
	return c
}

type installFlags struct {
	system, allowRoot bool
	user              string
}

func serviceInstallCommand(a *app) *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use: "install", Short: "install the service and start it", Args: noArgs,
		Long: `install the service and start it, or update the installed service to this program.
You can run it again at any time.

Without flags it installs a user service, which starts when you log in and needs no
administrator. With --system it installs a system service, which starts at boot and
runs as the user given with --user; under sudo the default is the user who ran sudo.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.installService(c.Context(), f) },
	}
	systemFlag(c, &f.system)
	c.Flags().StringVar(&f.user, "user", "", "with --system: the `NAME` of the user to run as")
	c.Flags().BoolVar(&f.allowRoot, "allow-root", false, "allow it to run terminals as root, and to lend them like those of other users")
	return c
}

func (a *app) installService(ctx context.Context, f installFlags) error {
	s, err := wantedService(ctx, f)
	if err != nil {
		return explained(err)
	}
	if err := mayManage(f.system); err != nil {
		return err
	}
	m := installer.New(f.system)
	done := a.progress(ctx, "waiting for the service to answer")
	change, err := m.Install(ctx, s)
	done()
	if err != nil {
		return explained(err)
	}
	st, err := m.Status(ctx)
	if err != nil {
		return explained(err)
	}
	did := map[installer.Change]string{installer.Installed: "installed", installer.Updated: "updated", installer.Unchanged: "already installed"}[change]
	fmt.Fprintf(a.stdout, "the service is %s and runs as %s: %s\n", did, s.User, st.Path)
	for _, advice := range st.Advice {
		a.notice("%s", advice)
	}
	return nil
}

// wantedService returns the service that the flags and this program's own environment ask
// for.
func wantedService(ctx context.Context, f installFlags) (installer.Service, error) {
	s := installer.Service{System: f.system, AllowRoot: f.allowRoot}
	if d, err := dirs.Get(); err == nil && !f.system && rootRemembered(d) {
		s.AllowRoot = true
	}
	program, err := stableProgram()
	if err != nil {
		return s, err
	}
	s.Program = program
	name := f.user
	switch {
	case f.system:
		name = cmp.Or(name, os.Getenv("SUDO_USER"))
		if name == "" && !f.allowRoot {
			return s, &usageError{"service install: --system needs --user NAME, the user to run as", "for example: sudo tether service install --system --user " + cmp.Or(os.Getenv("USER"), "NAME")}
		}
	case name != "":
		return s, &usageError{"service install: --user needs --system", "without both flags it installs a user service for you"}
	}
	if err := s.For(ctx, installer.Execute, name); err != nil {
		return s, err
	}
	s.Home = os.Getenv(dirs.HomeVar)
	if !f.system { // with sudo, root has other directories than the user
		for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
			if value := os.Getenv(name); filepath.IsAbs(value) {
				s.Env = append(s.Env, name+"="+value)
			}
		}
	}
	err = s.Check(runtime.GOOS)
	if errors.Is(err, installer.ErrRootService) {
		return s, &hinted{&localapi.Error{Code: localapi.CodeDenied, Message: err.Error()},
			"to run as yourself: tether service install; to run as another user: tether service install --system --user NAME; to run as root, add --allow-root"}
	}
	return s, err
}

// stableProgram returns the path under which this program is found. A package manager
// that installs another version does not change that path.
func stableProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	found, err := exec.LookPath(installer.Name)
	if err != nil {
		return self, nil
	}
	if found, err = filepath.Abs(found); err != nil {
		return self, nil
	}
	a, err1 := os.Stat(self)
	b, err2 := os.Stat(found)
	if err1 == nil && err2 == nil && os.SameFile(a, b) {
		return found, nil
	}
	return self, nil
}

// mayManage returns an error if the service is the machine's and the caller is no
// administrator. It is called before anything is begun.
func mayManage(system bool) error {
	if !system || installer.IsAdministrator() {
		return nil
	}
	return &hinted{&localapi.Error{Code: localapi.CodeDenied, Message: "a system service needs an administrator"},
		"use " + installer.AdministratorHint + "; or omit --system to manage your user service"}
}

// explained adds a remedy to an error of the installer.
func explained(err error) error {
	if p, ok := errors.AsType[*installer.Problem](err); ok {
		return &hinted{err, p.Next}
	}
	return err
}

func serviceUninstallCommand(a *app) *cobra.Command {
	var system, keep bool
	c := &cobra.Command{
		Use: "uninstall", Short: "stop the service and remove it", Args: noArgs,
		Long: `stop the service, end its terminals and remove it. With --keep its terminals keep
running, and the next daemon resumes them. Configuration and paired hosts are kept.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.uninstallService(c.Context(), system, keep) },
	}
	systemFlag(c, &system)
	c.Flags().BoolVar(&keep, "keep", false, "leave the terminals running")
	return c
}

func (a *app) uninstallService(ctx context.Context, system, keep bool) error {
	if err := mayManage(system); err != nil {
		return err
	}
	m := installer.New(system)
	st, err := m.Status(ctx)
	if errors.Is(err, installer.ErrNoManager) {
		a.notice("no service is installed: %v", installer.ErrNoManager)
		return nil
	}
	if err != nil {
		return explained(err)
	}
	if st.Service.Program == "" && st.Installed {
		return &hinted{fmt.Errorf("%s was not created by tether service install", st.Path), "remove it with the tool that created it"}
	}
	if st.Installed && !keep {
		if err := a.stopFor(ctx, st.Service); err != nil {
			return err
		}
	}
	if err := m.Uninstall(ctx); err != nil {
		return explained(err)
	}
	if !st.Installed {
		a.notice("no service is installed")
		return nil
	}
	fmt.Fprintf(a.stdout, "removed the service: %s\n", st.Path)
	return nil
}

// stopFor ends the daemon of the service and its terminals, as tether stop does if the
// user of the service runs it.
func (a *app) stopFor(ctx context.Context, s installer.Service) error {
	if !s.System {
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		if err := a.stop(ctx, false); !errors.Is(err, localclient.ErrNotRunning) {
			return err
		}
		return nil
	}
	out, err := installer.ExecuteAs(ctx, s, s.Program, "stop")
	if out = strings.TrimSpace(out); out != "" {
		a.notice("%s", out)
	}
	if code, ok := errors.AsType[*exec.ExitError](err); ok && code.ExitCode() == localapi.ExitNotRunning {
		return nil
	}
	return err
}

func serviceStatusCommand(a *app) *cobra.Command {
	var system, asJSON bool
	c := &cobra.Command{Use: "status", Short: "show whether the service is installed and running", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.serviceStatus(c.Context(), system, asJSON) }}
	systemFlag(c, &system)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// serviceJSON is the output of service status --json.
type serviceJSON struct {
	SchemaVersion int      `json:"schema_version"`
	Installed     bool     `json:"installed"`
	Enabled       bool     `json:"enabled"`
	Running       bool     `json:"running"`
	State         string   `json:"state"`
	Path          string   `json:"path,omitempty"`
	Program       string   `json:"program,omitempty"`
	User          string   `json:"user,omitempty"`
	Advice        []string `json:"advice"`
}

// serviceStatus prints the status. If the service does not run, the exit status is 3, as
// for tether status.
func (a *app) serviceStatus(ctx context.Context, system, asJSON bool) error {
	st, err := installer.New(system).Status(ctx)
	if err != nil {
		return explained(err)
	}
	var result error
	if !st.Running {
		result = exitCode(localapi.ExitNotRunning)
	}
	if asJSON {
		v := serviceJSON{localapi.SchemaVersion, st.Installed, st.Enabled, st.Running, st.State, st.Path, st.Service.Program, st.Service.User, append([]string{}, st.Advice...)}
		return errors.Join(a.printJSON(v), result)
	}
	if !st.Installed {
		fmt.Fprintln(a.stdout, "not installed")
		return result
	}
	starts := "automatically"
	if !st.Enabled {
		starts = "only manually"
	}
	if st.Service.User != "" { // a logon entry of Windows has no user: it belongs to the user who asks
		starts += ", as " + st.Service.User
	}
	fmt.Fprintf(a.stdout, "service    %s\nstarts     %s\ninstalled  %s\nprogram    %s\n", st.State, starts, st.Path, cmp.Or(st.Service.Program, "-"))
	for _, advice := range st.Advice {
		fmt.Fprintln(a.stdout, "note      ", advice)
	}
	return result
}

func serviceLogsCommand(a *app) *cobra.Command {
	var system, follow bool
	var lines int
	c := &cobra.Command{Use: "logs", Short: "print the service's output and log", Args: noArgs,
		Long: `print the last lines of the service's output, such as the reason why it did not
start, and of its log.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkRange(c, "--lines", int64(lines), 1, maxLines); err != nil {
				return err
			}
			return a.serviceLogs(c.Context(), system, follow, lines)
		}}
	systemFlag(c, &system)
	c.Flags().IntVarP(&lines, "lines", "n", 20, "the number of lines of each")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "follow the log")
	return c
}

func (a *app) serviceLogs(ctx context.Context, system, follow bool, lines int) error {
	m := installer.New(system)
	st, err := m.Status(ctx)
	if err != nil {
		return explained(err)
	}
	if argv := m.Printed(lines, false); len(argv) > 0 {
		if out, err := installer.Execute(ctx, argv[0], argv[1:]...); err == nil {
			fmt.Fprint(a.stdout, out)
		}
	}
	d, err := st.Service.Dirs(runtime.GOOS)
	if err != nil {
		return err
	}
	return tail(ctx, a.stdout, agent.LogPath(d), lines, follow)
}

// serviceLogonCommand returns the command that a Windows logon entry runs. It starts the
// daemon in the background, without a window.
func serviceLogonCommand(a *app) *cobra.Command {
	return homeCommand("logon", "start the daemon at logon", func(c *cobra.Command) error {
		_, err := a.ensured(c)
		return err
	})
}

// serviceRunCommand returns the command that the service manager of Windows runs.
func serviceRunCommand(a *app) *cobra.Command {
	return homeCommand("run", "run the daemon as a Windows service", func(*cobra.Command) error {
		return installer.RunAsService(func(ctx context.Context) error {
			return a.daemon(ctx, daemonFlags{notify: installer.Notifier(), replace: true})
		})
	})
}

// homeCommand returns a command for callers that do not pass on the user's environment.
func homeCommand(name, short string, run func(c *cobra.Command) error) *cobra.Command {
	var home string
	c := &cobra.Command{Use: name, Short: short, Hidden: true, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if home != "" {
				if err := os.Setenv(dirs.HomeVar, home); err != nil {
					return err
				}
			}
			return run(c)
		}}
	c.Flags().StringVar(&home, "home", "", dirs.HomeVar+" of the daemon")
	return c
}
