// Package limits reports the room on a disk and the limit of open files.
//
//	free, err := limits.Free(d.State)
package limits

import (
	"errors"
	"time"
)

// ErrUnsupported is returned where the system has no such limit, or this package does not know how to ask for it.
var ErrUnsupported = errors.New("not available on this system")

// Free returns how many bytes this user may still write to the file system that has the directory, which must be there. It may block on a
// file system of the network.
func Free(dir string) (uint64, error) { return free(dir) }

// Files returns how many files this process may have open at the same time. A program in Go that starts has raised it as far as it may.
func Files() (uint64, error) { return files() }

// Group bounds the resources that several programs use together. Zero values bound nothing.
type Group struct {
	Name      string // an agent's principal
	Processes int
	Memory    int64 // bytes
}

// CanGroup reports whether this system can bound a Group: on Linux through the systemd of the user, where cgroups are of version 2, on
// Windows by a job. It asks once, which may take up to 5 s; later calls do not block.
func CanGroup() bool { return canGroup() }

// Join returns argv as a command that runs in the group: with all others of the same name it takes no more than the group allows. It makes
// the group first, or changes its bounds, which may take up to 5 s. env is the environment in which the command will run; the result also
// has the variables that it needs. The process stays the same: no process remains between it and its parent. On Windows the command is
// returned unchanged, and pty.Start puts it into the group by the agent's mark.
func Join(g Group, argv, env []string) ([]string, []string, error) { return join(g, argv, env) }

// CPUTime returns argv as a command whose processes take at most limit of the processor's time each, in whole seconds. It returns
// ErrUnsupported on Windows.
func CPUTime(limit time.Duration, argv []string) ([]string, error) { return cpuTime(limit, argv) }
