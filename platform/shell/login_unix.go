//go:build linux || darwin

package shell

import (
	"context"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// askTimeout is how long a directory service may take to answer: it may be on a network
// that is down.
const askTimeout = 2 * time.Second

func login() string {
	return choose(usable, "/bin/sh", account, func() string { return os.Getenv("SHELL") })
}

func find(name string) string { return name }

func usable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && unix.Access(path, unix.X_OK) == nil
}

// ask runs a tool of the system and returns its output, or nil if it fails or takes too
// long.
func ask(tool string, args ...string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.WaitDelay = askTimeout // for child processes of the tool that keep the pipe open
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	return out
}
