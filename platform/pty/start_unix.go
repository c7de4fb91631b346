//go:build linux || darwin

package pty

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tether/platform/proc"
)

// check finds the program and names the fault of the command, where fork and execve would
// only say "no such file".
func (c Command) check() (path string, err error) {
	if err := checkDir(c.Dir); err != nil {
		return "", &StartError{What: "directory", Name: c.Dir, Err: err}
	}
	path, err = c.find()
	if err != nil {
		return "", &StartError{What: "program", Name: c.Path, Err: err}
	}
	return path, nil
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return cause(err)
	}
	if !info.IsDir() {
		return unix.ENOTDIR
	}
	return unix.Access(dir, unix.X_OK)
}

// find returns the program's path as seen from this process.
func (c Command) find() (string, error) {
	switch {
	case c.Path == "":
		return "", errors.New("no program given")
	case filepath.IsAbs(c.Path):
		return c.Path, checkProgram(c.Path)
	case strings.Contains(c.Path, "/"):
		path, err := filepath.Abs(filepath.Join(c.Dir, c.Path))
		if err != nil {
			return "", err
		}
		return path, checkProgram(path)
	default:
		return c.search()
	}
}

// search looks for a bare name along PATH. Like a shell it prefers to say that something
// was found but may not be executed; unlike one it takes an empty or relative entry to
// mean nothing, not the working directory.
func (c Command) search() (string, error) {
	var found error = fs.ErrNotExist
	for _, dir := range filepath.SplitList(lookupEnv(c.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, c.Path)
		err := checkProgram(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			found = err
		}
	}
	return "", found
}

func checkProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return cause(err)
	case info.IsDir():
		return unix.EISDIR
	case info.Mode()&0o111 == 0:
		return unix.EACCES // root is told by access(2) that it may
	default:
		return unix.Access(path, unix.X_OK)
	}
}

// fork starts the program, which reads in; faults are those of proc.StartLimited. Signals
// that this process ignores, because its parent did (nohup), would stay ignored in the
// program: Go resets only handled signals, so during the fork they are handled, by a
// channel that nobody reads.
func fork(c Command, path string, in, tty *os.File) (pid int, faults string, err error) {
	argv, env := c.Args, c.Env
	if len(argv) == 0 {
		argv = []string{c.Path}
	}
	if env == nil {
		env = []string{} // nil would inherit
	}
	if ignored := ignoredSignals(); len(ignored) > 0 {
		handled := make(chan os.Signal, 1)
		signal.Notify(handled, ignored...)
		defer signal.Stop(handled)
	}
	if err := proc.CloseOnExec(); err != nil {
		return 0, "", &StartError{What: "program", Name: path, Err: err}
	}
	fd := tty.Fd()
	if err := unix.SetNonblock(int(fd), false); err != nil { // programs expect a terminal to block
		return 0, "", &StartError{What: "terminal", Err: err}
	}
	pid, faults, err = proc.StartLimited(c.Limits, path, argv, &syscall.ProcAttr{
		Dir: c.Dir, Env: env, Files: []uintptr{in.Fd(), fd, fd},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1},
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("its interpreter does not exist") // the file itself was there a moment ago
	}
	if errors.Is(err, syscall.E2BIG) {
		err = c.tooLarge("this system does not take that much, or not in one variable")
	}
	if err != nil {
		return 0, "", &StartError{What: "program", Name: path, Err: err}
	}
	return pid, faults, nil
}

// lookupEnv returns the value that counts: the last one, as os/exec and shells have it.
func lookupEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// cause drops the path from an error that will be shown with it.
func cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
