// Command tether lends terminals of this machine to remote agent hosts: the daemon and
// the command line in one program.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"tether/agent/adopt"
	"tether/agent/holder"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/internal/version"
	"tether/platform/proc"
	"tether/platform/sandbox"
	"tether/platform/shell"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == holderVerb { // first: such a process is small and starts fast
		os.Exit(holder.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == readerVerb {
		os.Exit(adopt.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == keeperVerb {
		os.Exit(keep(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == proc.LimitsVerb {
		os.Exit(proc.BecomeLimited(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == sandbox.Verb {
		os.Exit(sandbox.Main(os.Args[2:]))
	}
	if len(os.Args) == 3 && os.Args[1] == shell.PrintVerb {
		if err := shell.PrintEnvironment(os.Stdout, os.Args[2]); err != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "--version" { // scripts ask it often; run would set up every command first
		if _, err := fmt.Println("tether", version.Text()); err == nil {
			return
		}
	}
	os.Exit(run())
}

// run is main, but returns the exit status, for tests and so that deferred calls run.
func run() int {
	// SIGHUP means that the person's terminal has ended. SIGPIPE is only caught so that a
	// write to a closed pipe is an error like any other.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)

	tells := os.Getenv(localclient.TellVar) != ""
	os.Unsetenv(localclient.TellVar) // not for child processes: their standard input is not that pipe

	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	var err error
	if argv, login, ok := windowArgs(os.Args[1:]); ok { // a person waits for the window's shell; the tree of commands takes a millisecond
		err = a.outcome(a.window(ctx, localapi.SpawnRequest{Command: argv}, login))
	} else {
		root := newRoot(a)
		root.SetArgs(os.Args[1:])
		err = a.outcome(root.ExecuteContext(ctx))
	}
	a.explain(ctx, err)
	if tells && !silent(ctx, err) {
		text, hint := inWords(err)
		code := localapi.CodeInternal
		if exitStatus(ctx, err) == localapi.ExitUsage { // the command that started it then exits likewise
			code = localapi.CodeBadRequest
		}
		_ = json.NewEncoder(os.Stdin).Encode(localapi.Error{Code: code, Message: text, Hint: hint}) // standard input is a pipe to who started the daemon, see local.TellVar; its reader may be gone
	}
	return exitStatus(ctx, err)
}
