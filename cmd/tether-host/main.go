// Command tether-host is a reference agent host, to which terminals are lent.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unicode"

	"tether/internal/output"
)

// Exit statuses, the same as tether's.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends it at once
	ballast := make([]byte, ballastBytes)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	runtime.KeepAlive(ballast)
	stop()
	os.Exit(status)
}

// ballastBytes is the size of an allocation that is never touched, so it takes no memory.
// Only the garbage collector counts it, and therefore lets more garbage accumulate before
// it collects. The heap of a host with few terminals is some 5 MiB: in a flood it would
// be collected 12 times a second, for a fifth of the host's CPU.
const ballastBytes = 8 << 20

// run runs the command, without exiting the process. It returns when ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := output.New(stdout)
	root := newRoot(os.Stdin, out, stderr)
	root.SetArgs(args)
	err := out.Outcome(root.ExecuteContext(ctx))
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "tether-host:", printable(err.Error()))
	if u, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintln(stderr, " ", u.hint)
		return exitUsage
	}
	return exitFailure
}

// printable returns text, which may come from another host, without characters that
// control a terminal or change how the rest is read.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}

// usageError says what is wrong with a command line.
type usageError struct{ message, hint string }

func (e *usageError) Error() string { return e.message }
