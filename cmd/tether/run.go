package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/ports"
	"tether/cmd/tether/internal/attach"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/platform/tty"
)

func runCommand(a *app) *cobra.Command {
	var r localapi.SpawnRequest
	var detach bool
	c := &cobra.Command{
		Use: "run [flags] -- CMD…", Short: "run a command in a terminal shared with the default host",
		Long: `run a command in a terminal shared with the default host.

At a terminal, you are attached to the command: ~. at the start of a line leaves it
running, ~? shows help. Input from a pipe or a file becomes the command's standard
input, byte for byte; its output still goes to a terminal. The exit status is the
command's. The umask, soft limits and nice value are those of your shell.`,
		Args: someArgs(1, -1, "a command, after --"),
		RunE: func(c *cobra.Command, argv []string) error {
			r.Command = argv
			if r.Feed = !detach && tty.Piped(a.stdin); r.Feed && !pty.CanFeed && ended(a.stdin) {
				r.Feed = false
			}
			if r.Feed && !pty.CanFeed {
				return &hinted{errors.New("on this system a command in a terminal cannot read a pipe or a file as its standard input"), "without input: <NUL; or let the command itself open the file"}
			}
			return a.run(c, r, detach)
		},
	}
	c.Flags().BoolVar(&r.ForwardBrowser, "forward-browser", false, "let the command's dev server print errors of the page, where a variable does that, or say what to change")
	c.Flags().SetInterspersed(false) // flags after the command are the command's
	spawnFlags(c, &r, &detach)
	return c
}

// endPatience is how long ended waits for an input to end.
const endPatience = 300 * time.Millisecond

// ended reports whether a pipe or file ends without a byte, as the input does that
// editors and other programs give. It takes the first byte.
func ended(f *os.File) bool {
	end := make(chan bool, 1)
	go func() {
		n, err := f.Read(make([]byte, 1))
		end <- n == 0 && err != nil
	}()
	select {
	case at := <-end:
		return at
	case <-time.After(endPatience):
		return false
	}
}

// spawnFlags are those of every command that starts a terminal.
func spawnFlags(c *cobra.Command, r *localapi.SpawnRequest, detach *bool) {
	f := c.Flags()
	f.StringVar(&r.Name, "name", "", "a `NAME` for the terminal; default: the command's name")
	f.StringVar(&r.Cwd, "cwd", "", "run in `DIR` instead of the current directory")
	f.BoolVarP(detach, "detach", "d", false, "print the terminal's id and leave the terminal running")
	f.BoolVar(&r.Private, "private", false, "hide the terminal from all hosts and agents")
	f.StringSliceVar(&r.LendTo, "host", nil, "lend the terminal to the paired host `NAME` instead of the default host")
	f.StringVar(&r.Port, "port", "", "give the command the TCP `PORT` auto (a free one, the same next time if it is free) or a number: as the variable PORT, and in place of {port} in its arguments")
	f.StringVar(&r.OnSlow, "on-slow", "", "the `MODE` for slow hosts: lag (the host misses output) or hold (the command waits for a while); default: as configured")
	f.Bool("login-env", false, "use the environment of a fresh login instead of the current one; tether env shows it")
	f.BoolVar(&r.NoIntegration, "no-integration", false, "start shells without the scripts that report commands")
}

func (a *app) run(c *cobra.Command, r localapi.SpawnRequest, detach bool) error {
	loginEnv, err := c.Flags().GetBool("login-env")
	if err != nil {
		return err
	}
	if c.Flags().Changed("port") {
		if err := ports.Check(r.Port); err != nil {
			return usage(c, "--%v", err)
		}
	}
	dir, err := directory(r.Cwd)
	if err != nil {
		return err
	}
	client, err := a.ensured(c)
	if err != nil {
		return err
	}
	if r.Port != "" {
		if has, err := client.Has(c.Context(), localapi.FeaturePort); err != nil || !has {
			return cmp.Or(err, error(&hinted{errors.New("the running daemon is older than this program and cannot give ports"), "replace it, and terminals run on: tether daemon --replace --background"}))
		}
	}
	r.Cwd = dir
	if !loginEnv {
		r.Env = environment(os.Environ())
	}
	if r.Limits, err = a.limits(c.Context(), client); err != nil {
		return err
	}
	if r.ForwardBrowser {
		if has, err := client.Has(c.Context(), localapi.FeatureForwardBrowser); err != nil {
			return err
		} else if !has {
			a.notice("the running daemon is older than this program and knows no --forward-browser; replace it, and terminals run on: tether daemon --replace --background")
		}
	}
	r.Cols, r.Rows = a.size()
	r.Attaches = !detach && tty.Is(a.stdin) && tty.Is(a.stdoutFile)
	done := a.progress(c.Context(), "waiting for the daemon to start the terminal")
	t, err := client.Spawn(c.Context(), r)
	done()
	if err != nil {
		return err
	}
	if t.Notice != "" {
		a.notice("%s", t.Notice)
	}
	if t.Port != 0 {
		a.notice("port %d", t.Port)
	}
	if len(t.LentTo) == 0 && !t.Private {
		a.sayNobody(c, client, t)
	}
	if detach {
		a.sayRefused(t)
		fmt.Fprintln(a.stdout, t.ID)
		return nil
	}
	return a.attachTo(c.Context(), client, t.ID, localclient.AttachOptions{FromStart: true}, attach.Options{Owns: true, Feed: r.Feed})
}

// limits returns the umask, nice value and soft limits of the person's shell, which its
// commands have; nil where there are none. A daemon that is too old to apply them gets
// none, and the person is told so.
func (a *app) limits(ctx context.Context, client *localclient.Client) (*proc.Limits, error) {
	own := proc.OwnLimits()
	if own.IsZero() {
		return nil, nil
	}
	has, err := client.Has(ctx, localapi.FeatureLimits)
	if err != nil {
		return nil, err
	}
	if !has {
		a.notice("the running daemon is older than this program and does not apply this shell's umask, limits and nice value; replace it, and terminals run on: tether daemon --replace --background")
		return nil, nil
	}
	return &own, nil
}

// directory returns name as an absolute path, since the daemon has another working
// directory. If the working directory was reached through symbolic links, the path keeps
// their names.
func directory(name string) (string, error) {
	if name != "" {
		return filepath.Abs(name)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("the current directory: %w", err)
	}
	return dir, nil
}

// environment returns the environment of the person's shell, which their programs expect.
// It leaves out tether's own variables: they may be credentials, and not even the daemon
// gets them.
func environment(env []string) []string {
	out := make([]string, 0, len(env))
	for _, e := range env {
		if !strings.HasPrefix(e, "TETHER_") || strings.HasPrefix(e, "TETHER_HOME=") {
			out = append(out, e)
		}
	}
	return out
}
