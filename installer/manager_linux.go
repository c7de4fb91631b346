package installer

import (
	"context"
	"os"
	"os/exec"
	"strconv"
)

// New returns the Manager for services of the user who calls, or of the machine.
func New(system bool) Manager {
	return &systemd{run: Execute, system: system, places: usualPlaces}
}

var usualPlaces = places{running: "/run/systemd/system", system: "/etc/systemd/system", linger: "/var/lib/systemd/linger", procs: "/proc"}

// sessionEnv returns the environment with XDG_RUNTIME_DIR, where systemctl finds the
// user's systemd. su and cron do not set it.
func sessionEnv() []string {
	env := os.Environ()
	dir := "/run/user/" + strconv.Itoa(os.Getuid())
	if info, err := os.Stat(dir); err == nil && info.IsDir() && os.Getenv("XDG_RUNTIME_DIR") == "" {
		env = append(env, "XDG_RUNTIME_DIR="+dir)
	}
	return env
}

// AdministratorHint is how one becomes an administrator here.
const AdministratorHint = "sudo"

// IsAdministrator reports whether this process may change services of the machine.
func IsAdministrator() bool { return os.Geteuid() == 0 }

// ExecuteAs is Execute as the user of a service of the machine, from an administrator.
// The output includes the command's error messages.
func ExecuteAs(ctx context.Context, s Service, argv ...string) (string, error) {
	line := []string{"-u", s.User, "--", "env", "HOME=" + s.UserHome, "XDG_RUNTIME_DIR=/run/user/" + strconv.Itoa(s.UID)}
	line = append(append(line, s.environment()...), argv...)
	out, err := exec.CommandContext(ctx, "runuser", line...).CombinedOutput()
	return string(out), err
}
