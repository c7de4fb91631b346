package installer

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Name is what the service is called wherever the system wants a short name.
const Name = "tether"

// Label is its name in launchd, which wants a reversed domain.
const Label = "dev.tether.daemon"

// A Service says what is to run and for whom.
type Service struct {
	// Program is the absolute path of the tether binary.
	Program string
	// Home is the value of TETHER_HOME for the daemon, "" to leave it to the
	// system's own directories.
	Home string
	// System makes it a service of the machine that runs as User. Otherwise
	// it is a service of the user who installs it.
	System bool
	// User is the name of the user a System service runs as, UID the number
	// and UserHome the home directory. They are not used otherwise.
	User     string
	UID      int
	UserHome string
	// AllowRoot lets a System service run as root.
	AllowRoot bool
}

// ErrRootService is returned for a system service that would lend shells of
// root without being told to.
var ErrRootService = errors.New("the service would run terminals as root; name another user with --user, or say --allow-root")

// Check returns what makes s unfit to be installed on the system goos, which
// is named as runtime.GOOS names it.
func (s *Service) Check(goos string) error {
	if err := checkPath("program", s.Program, goos); err != nil {
		return err
	}
	if s.Home != "" {
		if err := checkPath("TETHER_HOME", s.Home, goos); err != nil {
			return err
		}
	}
	if !s.System {
		return nil
	}
	if s.User == "" {
		return errors.New("a system service needs the user it runs as")
	}
	if strings.ContainsFunc(s.User, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '%' || r == '"' }) {
		return fmt.Errorf("user %q is no name of a user", s.User)
	}
	if s.UID == 0 && goos != "windows" && !s.AllowRoot {
		return ErrRootService
	}
	return nil
}

// checkPath finds what no service manager takes: relative paths, and
// characters that end a line or a text.
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

// args are the daemon's arguments.
func (s *Service) args() []string {
	if s.AllowRoot {
		return []string{"daemon", "--allow-root"}
	}
	return []string{"daemon"}
}
