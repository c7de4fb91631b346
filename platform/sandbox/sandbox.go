// Package sandbox confines a command and everything that it starts. There are two ways on Linux:
//
//   - [Wall]: namespaces of the kernel. The command has its own processes, devices, /tmp and home, sees only granted paths, and
//     reaches neither sockets nor processes outside.
//   - [Landlock], a fence: the command changes only files that are granted. It reads all files of the user and connects to all sockets.
//
// On macOS sandbox-exec is similar to Landlock. docs/SECURITY.md states the promises of each way.
//
//	argv, err := sandbox.Wrap(sandbox.Auto, sandbox.Profile{Writable: []string{dir}, Home: home}, self, []string{"npm", "test"})
//
// The program self must hand over to [Main] when its first argument is [Verb]: a process can give up rights only for itself and its
// children, so a helper does so and then starts the command. The daemon is never confined.
package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Kind is how a command is confined.
type Kind string

// The kinds.
const (
	Auto     Kind = "auto"     // the best that works here
	Wall     Kind = "wall"     // Linux with user namespaces
	Landlock Kind = "landlock" // Linux 6.2 or later
	Seatbelt Kind = "seatbelt" // macOS
)

// Verb is the first argument by which a program is asked to be the helper.
const Verb = "confine"

// Statuses of the helper when the command does not run, as shells have them.
const (
	statusConfine  = 125 // it could not be confined
	statusExec     = 126 // it could not be executed
	statusNotFound = 127
)

// ErrUnsupported is returned by Wrap if the kind is not available. Its text names the missing feature.
var ErrUnsupported = errors.New("the sandbox is not available")

// Profile lists the paths that a confined command may reach. Paths are absolute; those that do not exist when the command starts are left
// out.
type Profile struct {
	// Writable are the directories and files that may be changed, and read. A Wall opens them without following links.
	Writable []string
	// Readable are directories and files that a Wall shows, besides those of the system; links are followed.
	Readable []string `json:",omitempty"`
	// Hidden are directories and files that a Wall never shows, even inside a grant. Landlock cannot hide anything.
	Hidden []string `json:",omitempty"`
	// Sockets are unix sockets that a Wall lets be connected to.
	Sockets []string `json:",omitempty"`
	// Door is a directory of sockets that a Wall shows at another path, read-only: a socket that replaces another there later is visible, too.
	Door Door `json:",omitzero"`
	// Temporary are directories for temporary files that Landlock, which cannot make private ones, lets be changed.
	Temporary []string `json:",omitempty"`
	// Private is a directory for /tmp and the home directory within a Wall. All commands with the same one share them; when the last of these
	// commands has ended, the directory is removed. Without it each command has its own in memory.
	Private string `json:",omitempty"`
	// Home is the user's home directory. A Wall shows its Toolchains and Caches and hides its Secrets.
	Home string `json:",omitempty"`
	// NoNetwork leaves a Wall's command with a loopback interface of its own.
	NoNetwork bool `json:",omitempty"`
}

// Door is a directory with sockets, and the path where a Wall shows it, covering the path's own contents.
type Door struct {
	From string `json:",omitempty"`
	At   string `json:",omitempty"`
}

// Temporary is where programs put temporary files.
func Temporary() []string {
	all := []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"}
	slices.Sort(all)
	return slices.Compact(all)
}

// Wrap returns the argv that runs argv confined. The error is ErrUnsupported, wrapped, or names the fault of the profile. The first call in
// a process tries which kinds work, which takes some 50 ms.
func Wrap(k Kind, p Profile, self string, argv []string) ([]string, error) {
	if err := p.check(self); err != nil {
		return nil, err
	}
	if len(argv) == 0 {
		return nil, errors.New("sandbox: no command")
	}
	if k == Auto {
		best, err := Best(self)
		if err != nil {
			return nil, err
		}
		k = best
	} else if err := Works(k, self); err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return append([]string{self, Verb, string(k), string(text), "--"}, argv...), nil
}

func (p Profile) check(self string) error {
	granted := slices.Concat(p.Writable, p.Readable)
	if (p.Door.From == "") != (p.Door.At == "") || p.Door.From != "" && !(filepath.IsAbs(p.Door.From) && filepath.IsAbs(p.Door.At)) {
		return fmt.Errorf("sandbox: the door %q at %q needs two absolute paths", p.Door.From, p.Door.At)
	}
	for _, path := range slices.Concat(granted, p.Hidden, p.Sockets, p.Temporary, []string{self, p.Home}) {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("sandbox: %q is not an absolute path", path)
		}
	}
	for _, path := range granted {
		for _, hidden := range slices.Concat(p.Hidden, Secrets(p.Home)) {
			if within(path, hidden) {
				return fmt.Errorf("sandbox: cannot grant %s: %s is always hidden", path, hidden)
			}
		}
	}
	return nil
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Best is the best kind that works here; self as for Wrap.
func Best(self string) (Kind, error) {
	var missing error
	for _, k := range kinds {
		err := Works(k, self)
		if err == nil {
			return k, nil
		}
		missing = errors.Join(missing, err)
	}
	if missing == nil {
		missing = fmt.Errorf("%w: tether does not support sandboxes on this system", ErrUnsupported)
	}
	return "", missing
}

var tried struct {
	mu  sync.Mutex
	all map[[2]string]error // by kind and program
}

// Works tries whether the kind works here, once. The error is ErrUnsupported, wrapped.
func Works(k Kind, self string) error {
	if !slices.Contains(kinds, k) {
		return fmt.Errorf("%w: %q is not supported on this system", ErrUnsupported, k)
	}
	tried.mu.Lock()
	defer tried.mu.Unlock()
	key := [2]string{string(k), self}
	err, done := tried.all[key]
	if !done {
		err = try(k, self)
		if tried.all == nil {
			tried.all = map[[2]string]error{}
		}
		tried.all[key] = err
	}
	return err
}

// try has the helper confine another helper that does nothing.
func try(k Kind, self string) error {
	dir := filepath.Dir(self)
	text, err := json.Marshal(Profile{Readable: []string{dir}, Home: dir})
	if err != nil {
		return err
	}
	c := exec.Command(self, Verb, string(k), string(text), "--", self, Verb, verbNothing)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		why := strings.TrimPrefix(strings.TrimSpace(string(out)), complaint+" ")
		if why == "" {
			why = err.Error()
		}
		return fmt.Errorf("%w: %s: %s", ErrUnsupported, k, why)
	}
	return nil
}

// Jobs of the helper besides confining a command.
const (
	verbNothing = "nothing" // to end at once
	verbInit    = "init"    // to be the first process of a wall
)

// Main is the helper: it confines the command and runs it, or becomes it. It returns the status of its process.
func Main(args []string) int {
	if len(args) == 1 && args[0] == verbNothing {
		return 0
	}
	if len(args) > 1 && args[0] == verbInit {
		return inner(args[1:])
	}
	kind, p, argv, err := parseHelper(args)
	if err != nil {
		return complain(statusConfine, err)
	}
	return confine(Kind(kind), p, argv)
}

// parseHelper reads the arguments that Wrap has made, after the verb.
func parseHelper(args []string) (kind string, p Profile, argv []string, err error) {
	if len(args) < 4 || args[2] != "--" || args[3] == "" {
		return "", p, nil, errors.New("only the daemon runs this; to run a command, use tether sandbox -- CMD")
	}
	if err := json.Unmarshal([]byte(args[1]), &p); err != nil {
		return "", p, nil, fmt.Errorf("the profile: %w", err)
	}
	return args[0], p, args[3:], nil
}

const complaint = "tether: sandbox:"

func complain(status int, err error) int {
	fmt.Fprintln(os.Stderr, complaint, err)
	return status
}
