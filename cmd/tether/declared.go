package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tether/agent/local"
	"tether/platform/tty"
)

const declaredHelp = `

Terminals are declared in the configuration file, as [[terminal]]; tether config
edit opens it, docs/CONFIG.md lists the keys. Without a NAME all are meant.`

func upCommand(a *app) *cobra.Command {
	return declareCommand(a, local.DeclareUp, "up [NAME…]", "start the terminals that the configuration declares",
		`start the terminals that the configuration declares, unless they run.

The file is read again before: what was added to it is started, too. The daemon
starts them itself when it starts; a terminal that was put down stays down until
this command.`, "  tether up\n  tether up web api")
}

func downCommand(a *app) *cobra.Command {
	return declareCommand(a, local.DeclareDown, "down [NAME…]", "end declared terminals and leave them down",
		`end declared terminals, with everything that runs in them. They stay down, also
when the daemon starts anew, until tether up.`, "  tether down web")
}

func restartCommand(a *app) *cobra.Command {
	return declareCommand(a, local.DeclareRestart, "restart [NAME…]", "end declared terminals and start them anew",
		`end declared terminals, with everything that runs in them, and start them anew as
the configuration declares them now.`, "  tether restart web")
}

func declareCommand(a *app, do, use, short, long, example string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: use, Short: short, Long: long + declaredHelp, Example: example, Args: someArgs(0, -1, ""),
		RunE: func(c *cobra.Command, names []string) error {
			client, err := a.ensured(c)
			if err != nil {
				return err
			}
			done := a.progress(c.Context(), "waiting for the terminals")
			all, err := client.Declare(c.Context(), local.DeclareRequest{Do: do, Names: names})
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
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// declareFailure is the error for those that could not be started.
func declareFailure(do string, all []local.Declared) error {
	for _, d := range all {
		if do != local.DeclareDown && d.Error != "" {
			return &local.Error{Code: local.CodeCannotStart, Message: fmt.Sprintf("%s: %s", printable(d.Name, 70), printable(d.Error, 300)),
				Hint: "correct its [[terminal]] in the file that tether config path names, then tether up again"}
		}
	}
	return nil
}

func (a *app) printDeclared(all []local.Declared) {
	if len(all) == 0 {
		a.notice("no terminals are declared; add a [[terminal]] with: tether config edit")
	}
	for _, d := range all {
		fmt.Fprintln(a.stdout, d.Name, declaredText(d), d.ID)
	}
}

// declaredText is the state in words.
func declaredText(d local.Declared) string {
	switch {
	case d.State == "waiting":
		return fmt.Sprintf("restarts in %s", ago(time.Until(d.Next)))
	case d.State == "exited" && d.ExitCode != nil:
		return fmt.Sprintf("exited %d", *d.ExitCode)
	case d.Changed:
		return d.State + ", declared otherwise now"
	}
	return d.State
}

// progressAfter is how long a command may take without a word.
const progressAfter = time.Second

// progress says what is being done, if it takes longer than a moment and the person's terminal is there to be told. The function it
// returns ends that.
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
