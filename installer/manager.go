package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// A Manager makes a Service start by itself with the means of one system, and takes that back. There is at most one tether service per
// user, and one of the machine. Its methods are for one goroutine; all of them run commands of the system and wait for them. Their errors
// are *Problem wherever a person can do something about it.
type Manager interface {
	// Install installs and starts s, or updates the installed service to match it; the Change tells which. Calling it twice is harmless. It
	// returns when the daemon answers. After a failure, everything is as before.
	Install(ctx context.Context, s Service) (Change, error)
	// Uninstall stops the service and removes all that Install made. The terminals of the daemon run on. It is no error if nothing is
	// installed.
	Uninstall(ctx context.Context) error
	// Start, Stop and Restart do so to the daemon; its terminals run on. They return when it is done, and it is no error if there was nothing
	// to do.
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	// Status asks for the state of things.
	Status(ctx context.Context) (Status, error)
	// Printed is a command that prints the service's output outside its log, such as why it did not start: at most the last lines, and with
	// follow later ones. nil means that the system keeps none.
	Printed(lines int, follow bool) []string
}

// Change is the effect of Install.
type Change uint8

// The effects of Install.
const (
	Unchanged Change = iota // it was installed like this already
	Installed
	Updated // something else was installed before
)

// Status is the state of a service.
type Status struct {
	Installed bool
	Service   Service // as installed; only User is known of one that another program installed
	Path      string  // of the installed file
	Enabled   bool    // it starts by itself
	Running   bool
	State     string   // in the words of the system
	Advice    []string // obstacles to its start or its running on, and the remedies
}

// Problem is an error that a person can do something about.
type Problem struct {
	Text string // the fault
	Next string // the remedy
	Err  error  // may be nil
}

func (p *Problem) Error() string {
	if p.Err == nil {
		return p.Text
	}
	return fmt.Sprintf("%s: %v", p.Text, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }

// errNotInstalled is the error of operations that need an installed service.
func errNotInstalled(system bool) error {
	flag := ""
	if system {
		flag = " --system"
	}
	return &Problem{Text: "the service is not installed", Next: "tether service install" + flag}
}

// A Runner runs a command of the system and returns its output. The error of a failed command holds its message. Tests replace it.
type Runner func(ctx context.Context, name string, args ...string) (string, error)

// Execute is the Runner of real life. The commands find the session's own service manager also where the environment does not say where it
// is.
func Execute(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = sessionEnv()
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	what := name + " " + strings.Join(args, " ")
	if said := strings.TrimSpace(complaint.String()); said != "" {
		return out.String(), fmt.Errorf("%s: %s", what, said)
	}
	return out.String(), fmt.Errorf("%s: %w", what, err)
}

// undo runs the steps back and adds their errors to err.
func undo(err error, steps ...func() error) error {
	for _, step := range steps {
		if e := step(); e != nil {
			err = errors.Join(err, fmt.Errorf("and to undo it failed: %w", e))
		}
	}
	return err
}
