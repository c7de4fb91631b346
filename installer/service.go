package installer

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Name is the service's name where the system wants a short one.
const Name = "tether"

// Label is its name in launchd, which wants a reversed domain.
const Label = "dev.tether.daemon"

// A Service describes the program and its user. The installed file contains it, as JSON.
type Service struct {
	// Program is the absolute path of the tether binary.
	Program string `json:"program"`
	// Home is the value of TETHER_HOME for the daemon, "" to leave it to the system's own directories.
	Home string `json:"home,omitempty"`
	// Env are further entries of the daemon's environment, NAME=value: those that decide where it keeps its files. A Windows logon entry has
	// none.
	Env []string `json:"env,omitempty"`
	// System makes it a service of the machine that runs as User. Otherwise it is a service of the user who installs it.
	System bool `json:"system,omitempty"`
	// User is the name of the user it runs as, UID the number and UserHome the home directory. On Windows there are no numbers.
	User     string `json:"user"`
	UID      int    `json:"uid"`
	UserHome string `json:"user_home"`
	// AllowRoot lets it run as root.
	AllowRoot bool `json:"allow_root,omitempty"`
	// Lingers says that the installation let the user linger, which its removal takes back. Install sets it.
	Lingers bool `json:"lingers,omitempty"`
}

// ErrRootService is returned for a service that would lend shells of root without being told to.
var ErrRootService = errors.New("the service would run terminals as root")

// Check returns why s cannot be installed on the system goos, which is named as in runtime.GOOS.
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

// checkPath finds paths that no service manager accepts: relative ones, characters that end a line or a text, and characters that
// kardianos/service takes for a template.
func checkPath(what, p, goos string) error {
	switch {
	case p == "":
		return fmt.Errorf("%s: no path was given", what)
	case !utf8.ValidString(p) || strings.Contains(p, "{{") || strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
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

// args are the daemon's arguments. It takes the place of one that tether run has started, with its terminals.
func (s *Service) args() []string {
	args := []string{"daemon", "--replace"}
	if s.AllowRoot {
		args = append(args, "--allow-root")
	}
	return args
}

// recordMark begins the line of an installed file that holds its record.
const recordMark = "tether service: "

// record is s on one line, for a comment. JSON in Go has no line ends, < or >.
func (s *Service) record() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers
	}
	return recordMark + string(text)
}

// recorded finds the service that an installed file was rendered from. ok is false for a file that is not ours.
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
