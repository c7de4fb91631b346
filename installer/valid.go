//go:build unix

package installer

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// exitConfig is tether's exit status for a configuration with which a daemon does not
// start. The systemd unit has it, too.
const exitConfig = 2

// valid makes the program of s check the configuration of its daemon. It is called before
// a running daemon is ended, because with a wrong configuration none would follow. as are
// the words of a command that runs another one as s.User. A check that cannot be run
// proves nothing: then valid returns nil.
func (s *Service) valid(ctx context.Context, run Runner, as ...string) error {
	if s.Program == "" { // the service of a package, whose environment is not known
		return nil
	}
	argv := s.withEnv(s.Program, "config", "check")
	if s.System {
		argv = append(as, argv...)
	}
	_, err := run(ctx, argv[0], argv[1:]...)
	failed, ok := errors.AsType[*commandError](err)
	if exit, exited := errors.AsType[*exec.ExitError](err); !ok || !exited || exit.ExitCode() != exitConfig {
		return nil
	}
	fault, remedy, _ := strings.Cut(strings.TrimPrefix(failed.said, "tether: "), "\n")
	return &Problem{Text: "the service is left as it is, because its daemon would not start", Err: errors.New(fault), Next: strings.TrimSpace(remedy)}
}

// withEnv returns the argv that runs argv with the variables that decide about the
// daemon's files. This process may have others: those of another user, or settings that
// are not the service's.
func (s *Service) withEnv(argv ...string) []string {
	line := []string{"env"}
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "TETHER_") || slices.Contains([]string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"}, name) {
			line = append(line, "-u", name)
		}
	}
	return slices.Concat(line, []string{"HOME=" + s.UserHome}, s.environment(), argv)
}
