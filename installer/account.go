package installer

import (
	"context"
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"tether/platform/dirs"
)

// For fills in the user that a service runs as: the user with this name, or the user of
// this process if name is "".
func (s *Service) For(ctx context.Context, run Runner, name string) error {
	u, err := user.Current()
	if name != "" {
		u, err = lookup(ctx, run, name)
	}
	if err != nil {
		return err
	}
	s.User, s.UserHome = u.Username, u.HomeDir
	s.UID, err = strconv.Atoi(u.Uid)
	if err != nil {
		s.UID = -1 // Windows users have no numbers; -1 is not root's 0
	}
	return nil
}

// lookup also finds users that only a directory service on the network knows. getent asks
// it; package os/user without cgo does not.
func lookup(ctx context.Context, run Runner, name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err == nil {
		return u, nil
	}
	if self, err := user.Current(); err == nil && strings.HasSuffix(self.Username, `\`+name) { // Windows names begin with the machine
		return self, nil
	}
	out, failed := run(ctx, "getent", "passwd", name)
	f := strings.Split(strings.TrimSpace(out), ":")
	if failed == nil && len(f) == 7 {
		return &user.User{Username: f[0], Uid: f[2], Gid: f[3], HomeDir: f[5]}, nil
	}
	return nil, &Problem{Text: fmt.Sprintf("there is no user %q on this machine", name), Next: "give a user with --user NAME, or create the user first"}
}

// Dirs returns the directories of the service's daemon on the system goos. If the
// service's user is not known, and on Windows, it returns the directories of this
// process's user.
func (s *Service) Dirs(goos string) (dirs.Dirs, error) {
	if s.User == "" || goos == "windows" {
		return dirs.Get()
	}
	env := map[string]string{"HOME": s.UserHome}
	for _, e := range s.environment() {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	return dirs.For(goos, func(name string) string { return env[name] })
}
