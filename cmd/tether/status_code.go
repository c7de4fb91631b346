package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"tether/agent"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/cmd/tether/internal/display"
	"tether/platform/dirs"
)

// A person reads at most two lines about an error:
//
//	tether: what failed, in lower case
//	  what to do next
//
// Programs read the exit status; agent/local defines them, and docs/CLI.md explains them.

// exitCode is an error that ends the command with that status and without a message. It
// is the status of the command that ran in a terminal.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// cannotAttach is the error if an attachment could not be opened.
type cannotAttach struct{ err error }

func (e *cannotAttach) Error() string { return e.err.Error() }
func (e *cannotAttach) Unwrap() error { return e.err }

// The statuses that shells report after SIGINT and SIGPIPE.
const (
	exitInterrupted = 130
	exitPipe        = 141
)

// outcome returns the error with which a command ends that has returned err. Output that
// could not be written counts more than an exit status of the command's own, which would
// be without a message.
func (a *app) outcome(err error) error {
	var code exitCode
	if failed := a.stdout.Err(); failed != nil && errors.As(err, &code) {
		return failed
	}
	return a.stdout.Outcome(err)
}

// exitStatus maps a command's error to the process's exit status.
func exitStatus(ctx context.Context, err error) int {
	var code exitCode
	var usage *usageError
	var attach *cannotAttach
	switch {
	case err == nil:
		return localapi.ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		return localapi.ExitUsage
	case errors.As(err, &attach):
		return localapi.ExitCannotAttach
	case errors.Is(err, localclient.ErrDropped):
		return localapi.ExitDropped
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	}
	return localapi.ExitStatus(err)
}

// silent reports whether the exit status is enough, so that no message is printed.
func silent(ctx context.Context, err error) bool {
	var code exitCode
	return err == nil || errors.As(err, &code) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, context.Canceled) && ctx.Err() != nil
}

// explain reports an error to the person, unless the status is enough.
func (a *app) explain(ctx context.Context, err error) {
	if silent(ctx, err) {
		return
	}
	text, hint := inWords(err)
	fmt.Fprintln(a.stderr, "tether:", display.PrintableLines(text))
	if hint != "" {
		fmt.Fprintln(a.stderr, "  "+display.PrintableLines(hint))
	}
}

// inWords returns an error's text for a person, and its remedy.
func inWords(err error) (text, hint string) {
	if path, full := dirs.Full(err); full {
		return "no space left on " + path, "free some space, then run the command again"
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, localclient.ErrNotRunning) || strings.Contains(err.Error(), "belongs to another user") {
		d, wrong := dirs.Get()
		if wrong = errors.Join(wrong, d.Check()); wrong != nil {
			return wrong.Error(), ""
		}
	}
	if errors.Is(err, localclient.ErrNotRunning) {
		if d, wrong := dirs.Get(); wrong == nil {
			if locked := agent.LockHeld(context.Background(), d); locked != nil {
				return "the daemon is not running and cannot start: " + locked.Error(), locked.Hint()
			}
		}
		return "the daemon is not running", hintFor(err)
	}
	return err.Error(), hintFor(err)
}
