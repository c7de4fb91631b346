package installer

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Name is the service's name where the system wants a short name.
const Name = "tether"

// Label is the service's name in launchd, which wants a reversed domain name.
const Label = "dev.tether.daemon"

// A Service describes the program and its user. The installed file contains it, as JSON.
type Service struct {
	// Program is the absolute path of the tether binary.
	Program string `json:"program"`
	// Home is the value of TETHER_HOME for the daemon. "" leaves the variable unset, so
	// that the daemon uses the system's usual directories.
	Home string `json:"home,omitempty"`
	// Env are further entries of the daemon's environment, NAME=value: those that decide
	// where it keeps its files. They have no effect on Windows.
	Env []string `json:"env,omitempty"`
	// System makes it a service of the machine that runs as User. Otherwise it is a
	// service of the user who installs it.
	System bool `json:"system,omitempty"`
	// User, UID and UserHome are the name, the number and the home directory of the user
	// that the service runs as. UID is -1 on Windows.
	User     string `json:"user"`
	UID      int    `json:"uid"`
	UserHome string `json:"user_home"`
	// AllowRoot lets it run as root.
	AllowRoot bool `json:"allow_root,omitempty"`
	// Lingers says that Install enabled lingering for the user, which Uninstall then
	// disables. Install sets it.
	Lingers bool `json:"lingers,omitempty"`
}

// ErrRootService is returned by Check for a service that would run as root without
// AllowRoot.
var ErrRootService = errors.New("the service would run terminals as root")

// Check returns an error if s cannot be installed on the system goos, a value of
// runtime.GOOS.
func (s *Service) Check(goos string) error {
	if err := checkPath("program", s.Program, goos); err != nil {
		return err
	}
	if s.Home != "" {
		if err := checkPath("TETHER_HOME", s.Home, goos); err != nil {
			return err
		}
	}
	for _, e := range s.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return fmt.Errorf("environment %q is not of the form NAME=value", e)
		}
		if err := checkPath(name, value, goos); err != nil {
			return err
		}
	}
	if s.User == "" {
		return errors.New("a service needs the user it runs as")
	}
	if goos != "windows" && strings.ContainsFunc(s.User, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '%' || r == '"' }) {
		return fmt.Errorf("%q is not the name of a user", s.User)
	}
	if s.UID == 0 && goos != "windows" && !s.AllowRoot {
		return ErrRootService
	}
	return nil
}

// checkPath refuses paths that no service manager accepts: relative paths, and paths with
// control characters or invalid UTF-8.
func checkPath(what, p, goos string) error {
	switch {
	case p == "":
		return fmt.Errorf("%s: no path was given", what)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%s: %q has characters that a service cannot have", what, p)
	case !isAbs(p, goos):
		return fmt.Errorf("%s: %q is not an absolute path", what, p)
	}
	return nil
}

func isAbs(p, goos string) bool {
	if goos != "windows" {
		return path.IsAbs(p)
	}
	drive := len(p) >= 3 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
	return drive || strings.HasPrefix(p, `\\`)
}

// args returns the daemon's arguments. With --replace it takes over from a daemon that
// tether run has started, with that daemon's terminals.
func (s *Service) args() []string {
	args := []string{"daemon", "--replace"}
	if s.AllowRoot {
		args = append(args, "--allow-root")
	}
	return args
}

// recordMark begins the line of an installed file that holds its record.
const recordMark = "tether service: "

// record returns s on one line, for a comment. Go's JSON escapes line ends, < and >.
func (s *Service) record() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers
	}
	return recordMark + string(text)
}

// recorded returns the service from which an installed file was rendered. ok is false for
// a file that tether did not make.
func recorded(text string) (s Service, ok bool) {
	_, rest, found := strings.Cut(text, recordMark)
	if !found || !strings.Contains(text, madeBy) {
		return s, false
	}
	return s, json.NewDecoder(strings.NewReader(rest)).Decode(&s) == nil
}

// environment lists the daemon's variables besides the system's own.
func (s *Service) environment() []string {
	if s.Home == "" {
		return s.Env
	}
	return append([]string{"TETHER_HOME=" + s.Home}, s.Env...)
}
