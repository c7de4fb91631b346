// Package sandbox confines what a command can write to. Everything else stays as it is: the command reads what the user reads and
// has the network, so this keeps a mistaken or curious program from destroying things, not from telling others what it has seen.
//
//	argv, err := sandbox.Wrap(sandbox.Auto, sandbox.Profile{Writable: []string{dir}}, self, []string{"npm", "test"})
//
// The program self must hand over to [Main] when its first argument is [Verb]: a process can give up rights for itself and what it
// starts, so the command is started by a helper that does so first. The daemon is never confined.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Kind is how a command is confined.
type Kind string

// The kinds.
const (
	Auto     Kind = "auto"     // Landlock, or else Bwrap
	Landlock Kind = "landlock" // Linux 6.2 or later
	Bwrap    Kind = "bwrap"    // bubblewrap's bwrap, if it is installed and may make namespaces
)

// Verb is the first argument by which a program is asked to be the helper.
const Verb = "sandbox"

// Statuses of the helper when the command does not run, as shells have them.
const (
	statusConfine  = 125 // it could not be confined
	statusExec     = 126 // it could not be executed
	statusNotFound = 127
)

// ErrUnsupported is returned by Wrap where the kind is not available. Its text says what is missing.
var ErrUnsupported = errors.New("commands cannot be confined here")

// Profile says what a confined command may do. Devices that programs write to, such as /dev/null and terminals, it always may.
type Profile struct {
	// Writable are the directories and files, absolute, that may be changed. What does not exist when the command starts is left out.
	Writable []string
	// Hidden are directories, absolute, that Bwrap shows as empty ones. Landlock cannot hide anything.
	Hidden []string
}

// Temporary is where programs put temporary files. It belongs into most profiles.
func Temporary() []string {
	all := []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"}
	slices.Sort(all)
	return slices.Compact(all)
}

// Wrap returns the argv that runs argv confined. The error is ErrUnsupported, wrapped, or says what is wrong with the profile.
func Wrap(k Kind, p Profile, self string, argv []string) ([]string, error) {
	for _, path := range slices.Concat(p.Writable, p.Hidden, []string{self}) {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("sandbox: %q is not an absolute path", path)
		}
	}
	if len(argv) == 0 {
		return nil, errors.New("sandbox: no command")
	}
	var missing error // Landlock
	switch k {
	case Auto, Landlock:
		if missing = landlockMissing(); missing == nil {
			return helperArgv(p, self, argv), nil
		}
	case Bwrap:
	default:
		return nil, fmt.Errorf("sandbox: there is no kind %q", k)
	}
	if k == Landlock {
		return nil, missing
	}
	program, err := bwrapPath()
	if err != nil {
		return nil, errors.Join(missing, err)
	}
	return bwrapArgv(program, p, argv), nil
}

// helperArgv is the command line that Main reads.
func helperArgv(p Profile, self string, argv []string) []string {
	out := []string{self, Verb}
	for _, path := range p.Writable {
		out = append(out, "--write", path)
	}
	return append(append(out, "--"), argv...)
}

// parseHelper reads what helperArgv has made, after the verb.
func parseHelper(args []string) (p Profile, argv []string, err error) {
	for len(args) >= 2 && args[0] == "--write" && filepath.IsAbs(args[1]) {
		p.Writable = append(p.Writable, args[1])
		args = args[2:]
	}
	if len(args) < 2 || args[0] != "--" || args[1] == "" {
		return Profile{}, nil, errors.New("it is started by the daemon; run a command with --write DIR … -- CMD")
	}
	return p, args[1:], nil
}

// Main is the helper: it gives up the right to write outside of the profile and becomes the command. It returns, with the status of
// its process, only if that fails.
func Main(args []string) int {
	p, argv, err := parseHelper(args)
	if err != nil {
		return complain(statusConfine, err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return complain(statusNotFound, err)
	}
	if err := confine(p); err != nil {
		return complain(statusConfine, err)
	}
	if err := become(path, argv); err != nil {
		return complain(statusExec, fmt.Errorf("%s: %w", argv[0], err))
	}
	return 0
}

func complain(status int, err error) int {
	fmt.Fprintln(os.Stderr, "tether: sandbox:", err)
	return status
}

func bwrapPath() (string, error) {
	if !hasBwrap {
		return "", fmt.Errorf("%w: bubblewrap is for Linux", ErrUnsupported)
	}
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", fmt.Errorf("%w: bubblewrap's bwrap is not installed", ErrUnsupported)
	}
	return filepath.Abs(path)
}

// bwrapArgv mounts everything read-only, then what may be changed over it, and hides last.
func bwrapArgv(program string, p Profile, argv []string) []string {
	out := []string{program, "--die-with-parent", "--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"}
	for _, path := range p.Writable {
		out = append(out, "--bind-try", path, path)
	}
	for _, path := range p.Hidden {
		out = append(out, "--tmpfs", path)
	}
	return append(append(out, "--"), argv...)
}
