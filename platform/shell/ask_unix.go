//go:build linux || darwin

package shell

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// environment asks the login shell.
func environment(ctx context.Context, path, self string) ([]string, error) {
	args, err := asking(path)
	if err != nil {
		return nil, err
	}
	mark := rand.Text()
	command := "exec " + quote(self) + " " + PrintVerb + " " + mark
	out, err := runLogin(ctx, path, append(args, command), bare(os.Environ(), path))
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the start-up files of %s took too long: %w", path, ctx.Err())
	}
	env, ok := between(out, mark)
	if !ok {
		return nil, fmt.Errorf("%s did not run the command: %w", path, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return env, nil
}

// asking returns the arguments that make the shell an interactive login shell that runs
// one command.
func asking(path string) ([]string, error) {
	switch strings.TrimRight(filepath.Base(path), "-.0123456789") {
	case "bash", "zsh", "fish", "ksh", "mksh", "sh", "dash", "ash":
		return []string{"-l", "-i", "-c"}, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, path)
}

// quote quotes s in a form that all the shells in asking understand.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}

// kept are the variables with which a login begins: who the user is, and how to reach the
// user's session and key agents. The other variables of this process are left out,
// because it may have been started from anywhere.
var kept = []string{"HOME", "USER", "LOGNAME", "LANG", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "DISPLAY",
	"WAYLAND_DISPLAY", "XAUTHORITY", "TMPDIR", "__CF_USER_TEXT_ENCODING"}

// bare returns the environment of a login before any start-up file is read.
func bare(env []string, path string) []string {
	out := []string{"SHELL=" + path, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "TERM=dumb", "TETHER_RESOLVING_ENVIRONMENT=1"}
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); slices.Contains(kept, name) {
			out = append(out, e)
		}
	}
	if u, err := user.Current(); err == nil { // a service may lack the variables that login(1) sets
		for name, value := range map[string]string{"USER": u.Username, "LOGNAME": u.Username, "HOME": u.HomeDir} {
			if value != "" && !slices.ContainsFunc(out, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
				out = append(out, name+"="+value)
			}
		}
	}
	return out
}

// between returns the entries that PrintEnvironment has printed between the marks; false
// if the output does not have both marks.
func between(out []byte, mark string) ([]string, bool) {
	_, rest, begun := bytes.Cut(out, []byte(mark+"\x00"))
	env, _, ended := bytes.Cut(rest, []byte("\x00"+mark))
	if !begun || !ended {
		return nil, false
	}
	return strings.Split(string(env), "\x00"), true
}
