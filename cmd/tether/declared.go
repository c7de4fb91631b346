package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/platform/tty"
	"tether/vocab"
)

const declaredHelp = `

Declare terminals as [[terminal]] in the configuration file: tether config edit opens
it, docs/CONFIG.md lists the keys. Without a NAME, the command applies to all of them.`

func upCommand(a *app) *cobra.Command {
	return declareCommand(a, localapi.DeclareUp, "up [NAME…]", "start the declared terminals",
		`start the terminals declared in the configuration that are not running.

The command reads the file again first, so it also starts terminals added since. The
daemon starts declared terminals when it starts, except those ended by tether down or
tether kill: they stay down until tether up.`, "  tether up\n  tether up web api")
}

func downCommand(a *app) *cobra.Command {
	return declareCommand(a, localapi.DeclareDown, "down [NAME…]", "end declared terminals and keep them down",
		`end declared terminals and all their processes. They stay down until tether up, also
after a restart of the daemon.`, "  tether down web")
}

func restartCommand(a *app) *cobra.Command {
	return declareCommand(a, localapi.DeclareRestart, "restart [NAME…]", "restart declared terminals",
		`end declared terminals and all their processes, and start them again with the current
configuration.`, "  tether restart web")
}

func declareCommand(a *app, do, use, short, long, example string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: use, Short: short, Long: long + declaredHelp, Example: example, Args: someArgs(0, -1, ""),
		RunE: a.withDaemon(func(c *cobra.Command, client *localclient.Client, names []string) error {
			r := localapi.DeclareRequest{Do: do, Names: names}
			if do == localapi.DeclareUp {
				var err error
				if r.Limits, err = a.limits(c.Context(), client); err != nil {
					return err
				}
			}
			done := a.progress(c.Context(), "waiting for the terminals")
			all, err := client.Declare(c.Context(), r)
			done()
			if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(all)
			} else {
				a.printDeclared(all.Declared)
			}
			return errors.Join(err, declareFailure(do, all.Declared))
		}),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// declareFailure returns the error of the first terminal that could not be started.
func declareFailure(do string, all []localapi.Declared) error {
	for _, d := range all {
		if do != localapi.DeclareDown && d.Error != "" {
			return &localapi.Error{Code: localapi.CodeCannotStart, Message: fmt.Sprintf("%s: %s", display.Printable(d.Name, 70), display.Printable(d.Error, 300)),
				Hint: "correct its [[terminal]] with tether config edit, then run tether up again"}
		}
	}
	return nil
}

func (a *app) printDeclared(all []localapi.Declared) {
	if len(all) == 0 {
		a.notice("no declared terminals; add a [[terminal]] with: tether config edit")
	}
	for _, d := range all {
		fmt.Fprintln(a.stdout, d.Name, display.Declared(d), d.ID)
		if d.Notice != "" {
			a.notice("%s: %s", display.Printable(d.Name, 70), display.Printable(d.Notice, 300))
		}
		if d.Ready == vocab.ReadyFailed {
			a.notice("%s is not ready: %s", display.Printable(d.Name, 70), display.Printable(d.ReadyWhy, 300))
		}
	}
}

// progressAfter is how long a command may take before it says what it waits for.
const progressAfter = time.Second

// progress prints what a command waits for after progressAfter, if standard error is a
// terminal. The caller must call the returned function, which cancels that.
func (a *app) progress(ctx context.Context, what string) func() {
	if !tty.Is(a.stderr) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-time.After(progressAfter):
			a.notice("%s…", what)
		case <-ctx.Done():
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
