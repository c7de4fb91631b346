// Package limits reports the room on a disk and the limit of open files.
//
//	free, err := limits.Free(d.State)
package limits

import "errors"

// ErrUnsupported is returned where the system has no such limit, or this package does not know how to ask for it.
var ErrUnsupported = errors.New("not available on this system")

// Free returns how many bytes this user may still write to the file system that has the directory, which must be there. It may
// block on a file system of the network.
func Free(dir string) (uint64, error) { return free(dir) }

// Files returns how many files this process may have open at the same time. A program in Go that starts has raised it as far as it
// may.
func Files() (uint64, error) { return files() }
