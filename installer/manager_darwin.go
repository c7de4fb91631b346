package installer

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
)

const machineLists = "/Library/LaunchDaemons"

// New returns the Manager for services of the user who calls, or of the machine.
func New(system bool) Manager {
	home, _ := os.UserHomeDir() // without a home, the paths are relative
	m := &launchd{run: Execute, system: system, uid: os.Getuid(), dir: filepath.Join(home, "Library/LaunchAgents"), daemon: machineLists,
		log: func(s Service) string { return filepath.Join(s.UserHome, "Library/Logs/tether.log") }}
	if system {
		m.dir = machineLists
	}
	return m
}

func sessionEnv() []string { return os.Environ() }

// AdministratorHint is how one becomes an administrator here.
const AdministratorHint = "sudo"

// IsAdministrator reports whether this process may change services of the machine.
func IsAdministrator() bool { return os.Geteuid() == 0 }

// ExecuteAs is Execute as the user of a service of the machine, from an administrator.
// The output includes the command's error messages.
func ExecuteAs(ctx context.Context, s Service, argv ...string) (string, error) {
	line := append([]string{"-u", s.User, "env", "HOME=" + s.UserHome}, s.environment()...)
	out, err := exec.CommandContext(ctx, "sudo", append(line, argv...)...).CombinedOutput()
	return string(out), err
}
