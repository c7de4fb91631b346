package pty

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/windows"
)

// check finds the program and names the fault of the command, where CreateProcess would
// only say "cannot find the file".
func (c Command) check() (path string, err error) {
	if c.Dir != "" {
		info, err := os.Stat(c.Dir)
		if err == nil && !info.IsDir() {
			err = windows.ERROR_DIRECTORY
		}
		if err != nil {
			return "", &StartError{What: "directory", Name: c.Dir, Err: cause(err)}
		}
	}
	path, err = c.find()
	if err != nil {
		return "", &StartError{What: "program", Name: c.Path, Err: err}
	}
	return path, nil
}

// find returns the program's path as seen from this process.
func (c Command) find() (string, error) {
	switch {
	case c.Path == "":
		return "", errors.New("no program given")
	case filepath.IsAbs(c.Path):
		return c.complete(c.Path)
	case strings.ContainsAny(c.Path, `\/:`):
		path, err := filepath.Abs(filepath.Join(c.Dir, c.Path))
		if err != nil {
			return "", err
		}
		return c.complete(path)
	default:
		return c.search()
	}
}

// search looks for a bare name along PATH, in absolute directories only: unlike
// CreateProcess, neither in the working directory nor in this program's directory.
func (c Command) search() (string, error) {
	list, _ := lookupFold(c.Env, "PATH")
	var found error = fs.ErrNotExist
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path, err := c.complete(filepath.Join(dir, c.Path))
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			found = err
		}
	}
	return "", found
}

// startable are the extensions that CreateProcess or cmd.exe can start by themselves;
// other extensions in PATHEXT need a program of their own.
var startable = []string{".com", ".exe", ".bat", ".cmd"}

// complete adds the extension that a path leaves out, in the order of PATHEXT.
func (c Command) complete(path string) (string, error) {
	if ext := filepath.Ext(path); ext != "" {
		if err := checkFile(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
	}
	pathExt, _ := lookupFold(c.Env, "PATHEXT")
	exts := slices.DeleteFunc(strings.Split(strings.ToLower(pathExt), ";"), func(ext string) bool { return !slices.Contains(startable, ext) })
	if len(exts) == 0 {
		exts = startable
	}
	for _, ext := range exts {
		if err := checkFile(path + ext); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path + ext, err
		}
	}
	return path, checkFile(path)
}

func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil { // the Store's programs are links of a kind that only CreateProcess follows
		if link, lerr := os.Lstat(path); lerr == nil && link.Mode()&fs.ModeSymlink == 0 {
			info, err = link, nil
		}
	}
	switch {
	case err != nil:
		return cause(err)
	case info.IsDir():
		return errors.New("is a directory")
	}
	return nil
}

// cause drops the path from an error that will be shown with it.
func cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
