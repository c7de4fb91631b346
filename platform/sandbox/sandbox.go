// Package sandbox confines a command and everything that it starts. There are two kinds
// on Linux:
//
//   - [Wall]: namespaces of the kernel. The command has its own processes, devices, /tmp
//     and home, sees only granted paths, and reaches neither sockets nor processes
//     outside.
//   - [Landlock], a fence: the command changes only granted files. It can read all files
//     of the user and connect to all sockets.
//
// On macOS sandbox-exec is similar to Landlock. docs/SECURITY.md states the promises of
// each kind.
//
//	argv, err := sandbox.Wrap(sandbox.Auto, sandbox.Profile{Writable: []string{dir}, Home: home}, self, []string{"npm", "test"})
//
// The program self must call [Main] when its first argument is [Verb]. It is then the
// helper, which gives up rights and starts the command: a process can give up rights only
// for itself and its children. The daemon is never confined.
package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Kind is how a command is confined.
type Kind string

// The kinds.
const (
	Auto     Kind = "auto"     // the best kind that works here
	Wall     Kind = "wall"     // Linux with user namespaces
	Landlock Kind = "landlock" // Linux 6.2 or later
	Seatbelt Kind = "seatbelt" // macOS
)

// Verb is the first argument with which a program is the helper.
const Verb = "confine"

// Exit statuses of the helper if the command does not run; shells use the same 126 and
// 127.
const (
	statusConfine  = 125 // the command could not be confined
	statusExec     = 126 // the command could not be executed
	statusNotFound = 127
)

// ErrUnsupported is returned by Wrap if the kind is not available. Its text names the
// missing feature.
var ErrUnsupported = errors.New("the sandbox is not available")

// ErrAgentLink is returned by Resolve for a path through a link that an agent may have
// made. It also is fs.ErrNotExist: such paths are left out like missing ones.
var ErrAgentLink error = agentLink{}

type agentLink struct{}

func (agentLink) Error() string { return "it is a link in a directory that agents may change" }

// Is implements what errors.Is asks for.
func (agentLink) Is(err error) bool { return err == fs.ErrNotExist }

// Profile lists the paths that a confined command may reach. Paths are absolute; those
// that do not exist when the command starts are left out.
type Profile struct {
	// Writable are the directories and files that the command may change and read. A Wall
	// opens them without following links.
	Writable []string
	// Readable are directories and files that a Wall shows read-only, besides those of
	// the system. Links are followed, except those in Writable and Roots.
	Readable []string `json:",omitempty"`
	// Roots are directories of which agents may be granted any part at another time,
	// except Home and the directories above it. A Wall follows no link in them or in
	// Writable, because an agent may have made it.
	Roots []string `json:",omitempty"`
	// Hidden are directories and files that a Wall and Seatbelt never show, even inside a
	// grant. Landlock cannot hide anything.
	Hidden []string `json:",omitempty"`
	// Sockets are unix sockets to which the command may connect.
	Sockets []string `json:",omitempty"`
	// Door is a directory of sockets that a Wall shows at another path, read-only. A
	// socket that replaces another there later is visible, too.
	Door Door `json:",omitzero"`
	// Temporary are directories for temporary files that the command may change, except
	// behind a Wall, which has private ones.
	Temporary []string `json:",omitempty"`
	// Private is a directory that holds /tmp and the home directory of a Wall. All
	// commands with the same Private share them; when the last of these commands has
	// ended, the directory is removed. If it is "", each command has its own in memory.
	Private string `json:",omitempty"`
	// Home is the user's home directory. A Wall shows its Toolchains and Caches and hides
	// its Secrets.
	Home string `json:",omitempty"`
	// NoNetwork gives a Wall's command only a loopback interface of its own. Seatbelt
	// refuses it the network. Landlock ignores NoNetwork.
	NoNetwork bool `json:",omitempty"`
}

// Door is a directory with sockets, and the path where a Wall shows it, in place of the
// path's own contents.
type Door struct {
	From string `json:",omitempty"`
	At   string `json:",omitempty"`
}

// Temporary returns the directories in which programs make temporary files.
func Temporary() []string {
	all := []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"}
	slices.Sort(all)
	return slices.Compact(all)
}

// Wrap returns the argv that runs argv confined. Its error wraps ErrUnsupported, or says
// what is wrong with the profile or argv. The first call in a process tries which kinds
// work, which takes about 50 ms.
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
		if !utf8.ValidString(path) { // the profile is JSON, which would name another path
			return fmt.Errorf("sandbox: the path %q is not UTF-8, and cannot be granted", path)
		}
		if !filepath.IsAbs(path) {
			return fmt.Errorf("sandbox: %q is not an absolute path", path)
		}
	}
	always := p.hidden()
	for _, path := range granted {
		for _, hidden := range always {
			if within(path, hidden) {
				return fmt.Errorf("sandbox: cannot grant %s: %s is always hidden", path, hidden)
			}
		}
	}
	return nil
}

// hidden returns Hidden and the secrets of Home, also by the names to which links lead:
// grants have names without links.
func (p Profile) hidden() []string {
	all := slices.Concat(p.Hidden, Secrets(p.Home))
	for _, path := range all {
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			all = append(all, real)
		}
	}
	return all
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Best returns the best kind that works here; self as for Wrap.
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

// Works tries whether the kind works here. It tries each kind and self only once; later
// calls return the same result. The error wraps ErrUnsupported.
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

// try makes the helper confine another helper that does nothing.
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
	verbNothing = "nothing" // end at once
	verbInit    = "init"    // be the first process of a wall
)

// Main is the helper: it confines the command and runs it, or becomes it. It returns the
// exit status of its process.
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
