package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// A Manager installs a Service so that one system starts it automatically, and removes it
// again. There is at most one tether service per user, and one of the machine. A
// Manager's methods are for one goroutine; all of them run commands of the system and
// wait for them. Their errors are *Problem wherever a person can do something about it.
type Manager interface {
	// Install installs and starts s, or updates the installed service to match it; the
	// Change says which. Calling it twice is harmless. On Linux and with a Windows logon
	// entry it returns when the daemon answers; launchd and the Windows service manager
	// only start the daemon. After a failure, everything is as before, except that a
	// Windows service of another program path was removed for the new one.
	Install(ctx context.Context, s Service) (Change, error)
	// Uninstall stops the service and removes everything that Install made. The daemon's
	// terminals continue. It is no error if nothing is installed.
	Uninstall(ctx context.Context) error
	// Start, Stop and Restart start, stop and restart the daemon; its terminals continue.
	// They return when that is done. If there was nothing to do, that is no error.
	// Restart, and Install when it restarts, change nothing if the service's program
	// finds the configuration wrong; for a Windows service of the machine nothing checks
	// that.
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
	Restart(ctx context.Context) error
	// Status asks the system for the state of the service.
	Status(ctx context.Context) (Status, error)
	// Printed returns the argv of a command that prints the output of the service that is
	// not in the daemon's log, such as why it did not start: the last lines of it, at
	// most as many as lines says, and later lines if follow is set. nil means that the
	// system keeps no such output.
	Printed(lines int, follow bool) []string
}

// Change is the effect of Install.
type Change uint8

// The effects of Install.
const (
	Unchanged Change = iota // the same service was installed already
	Installed
	Updated // something else was installed before
)

// Status is the state of a service.
type Status struct {
	Installed bool
	Service   Service // as installed, as far as the system shows it; zero if another program installed it
	Path      string  // of the installed file
	Enabled   bool    // the system starts it automatically
	Running   bool
	State     string   // in the words of the system
	Advice    []string // what may keep it from starting or end it, and the remedies
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

// ErrNoManager is below the error of every method where no service manager runs: there is
// no service, and none can be installed.
var ErrNoManager = errors.New("systemd does not run here")

// errNotInstalled is the error of operations that need an installed service.
func errNotInstalled(system bool) error {
	flag := ""
	if system {
		flag = " --system"
	}
	return &Problem{Text: "the service is not installed", Next: "tether service install" + flag}
}

// A Runner runs a command of the system and returns its output. The error of a failed
// command holds its message. Tests replace it.
type Runner func(ctx context.Context, name string, args ...string) (string, error)

// Execute is the Runner that runs real commands. They find the user's own service manager
// even if the environment does not name it.
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
		return out.String(), &commandError{what, said, err}
	}
	return out.String(), fmt.Errorf("%s: %w", what, err)
}

// commandError is the error of a command that has printed why it failed.
type commandError struct {
	what, said string // the command and its error output
	err        error
}

func (e *commandError) Error() string { return e.what + ": " + e.said }

func (e *commandError) Unwrap() error { return e.err }

// undo runs the steps in this order and adds their errors to err.
func undo(err error, steps ...func() error) error {
	for _, step := range steps {
		if e := step(); e != nil {
			err = errors.Join(err, fmt.Errorf("and to undo it failed: %w", e))
		}
	}
	return err
}
