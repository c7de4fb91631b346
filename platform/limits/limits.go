// Package limits reports the free space of a disk and the limit of open files, and bounds
// the resources that commands use.
//
//	free, err := limits.Free(d.State)
package limits

import (
	"errors"
	"time"
)

// ErrUnsupported is returned where the system has no such limit, or this package does not
// know how to ask for it.
var ErrUnsupported = errors.New("not available on this system")

// Free returns how many bytes this user may still write to the file system of the
// directory, which must exist. It may block on a network file system.
func Free(dir string) (uint64, error) { return free(dir) }

// Files returns how many files this process may have open at the same time. Go's runtime
// raises this limit as far as it may when a program starts.
func Files() (uint64, error) { return files() }

// Group bounds the resources that several programs use together. Zero values bound
// nothing.
type Group struct {
	Name      string // an agent's principal
	Processes int
	Memory    int64 // bytes
}

// Join returns the argv that runs argv in the group: together with all commands of groups
// with the same name it uses no more than the group allows. Join first makes the group or
// changes its bounds, which may take up to 6 s. env is the environment in which the
// command will run; the second result is env with the variables that Join's argv needs.
// No process remains between the command and its parent. On Windows Join returns the
// command unchanged, and pty.Start puts it into the group by the agent's tag in its
// environment. Join returns ErrUnsupported where the system cannot bound a Group: it can
// on Linux through the user's systemd and cgroups of version 2, on Windows by a job.
func Join(g Group, argv, env []string) ([]string, []string, error) { return join(g, argv, env) }

// CPUTime returns argv as a command whose processes take at most limit of the processor's
// time each, in whole seconds. It returns ErrUnsupported on Windows.
func CPUTime(limit time.Duration, argv []string) ([]string, error) { return cpuTime(limit, argv) }
