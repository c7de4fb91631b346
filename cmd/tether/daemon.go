package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/local"
	"tether/platform/dirs"
)

// allowRootVar stands for --allow-root, also for a daemon that another command starts.
const allowRootVar = "TETHER_ALLOW_ROOT"

func daemonCommand(a *app) *cobra.Command {
	var allowRoot bool
	var level string
	c := &cobra.Command{
		Use: "daemon", Short: "run the daemon in the foreground", Args: noArgs,
		Long: `run the daemon in the foreground, until SIGTERM or tether stop.

tether run and tether pair start one in the background when none runs.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.daemon(c.Context(), allowRoot || os.Getenv(allowRootVar) == "1", level)
		},
	}
	c.Flags().BoolVar(&allowRoot, "allow-root", false, "run as root, for containers (or "+allowRootVar+"=1)")
	c.Flags().StringVar(&level, "log-level", "", "debug, info, warn or error, instead of what is configured")
	return c
}

func (a *app) daemon(ctx context.Context, allowRoot bool, level string) error {
	d, err := dirs.Get()
	if err != nil {
		return err
	}
	settings, err := config.Load(config.Path(d))
	if err != nil {
		return configError(err)
	}
	daemon, err := agent.New(agent.Config{Dirs: d, Version: versionText(), AllowRoot: allowRoot, Settings: &settings, LogLevel: level,
		Ready: func() { fmt.Fprintln(a.stderr, "tether: ready, process", os.Getpid()) }})
	if err != nil {
		return &usageError{message: "daemon: " + err.Error(), hint: "see tether daemon --help"}
	}
	err = daemon.Run(ctx)
	var running *agent.RunningError
	switch {
	case errors.Is(err, agent.ErrRoot):
		return &hinted{&local.Error{Code: local.CodeDenied, Message: err.Error()},
			"run it as yourself; in a container: tether daemon --allow-root, or " + allowRootVar + "=1 for all commands"}
	case errors.As(err, &running):
		return &hinted{err, "tether status shows it, tether stop ends it"}
	}
	return err
}

// stopTimeout is how long a daemon may take to end; it gives itself 5 s.
const stopTimeout = 8 * time.Second

func stopCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "stop", Short: "end the daemon and all its terminals", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, _, err := a.client()
			if err != nil {
				return err
			}
			if err := client.Shutdown(c.Context()); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), stopTimeout)
			defer cancel()
			return client.WaitGone(ctx)
		},
	}
}
