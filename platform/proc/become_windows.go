package proc

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
)

// Become makes this process the program at the absolute path, with these arguments, its
// own name first, and this environment and directory. It then returns only if that fails.
// On Windows, which has nothing like it, the program runs as a child, and Become returns
// its exit status.
func Become(path string, argv []string) (status int, err error) {
	signal.Ignore(os.Interrupt) // ^C is the program's
	c := &exec.Cmd{Path: path, Args: argv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if err := c.Start(); err != nil {
		return 0, fmt.Errorf("start %q: %w", path, err)
	}
	_ = c.Wait() // its status is what counts
	return c.ProcessState.ExitCode(), nil
}
