// Package dirs determines the directories for tether's files. It does not make them.
//
//	d, err := dirs.Get()
//	config := filepath.Join(d.Config, "config.toml")
//
// The result is a pure function of the system's name and the environment, so that one
// system can test all of them.
package dirs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// HomeVar is the environment variable that puts everything below one directory, so that
// several daemons can run side by side.
const HomeVar = "TETHER_HOME"

// MaxSocketName is the length in bytes of the longest file name in Dirs.Runtime with
// which a path still fits a unix socket.
const MaxSocketName = 32

// Dirs are absolute paths.
type Dirs struct {
	Config  string // files that the user writes
	State   string // files that must survive: keys, tokens, logs, records
	Runtime string // sockets and locks of running processes; short enough for sockets, see MaxSocketName
	Cache   string // files that can be made again
}

// Get is For on this system with this process's environment. If XDG_RUNTIME_DIR is not
// set, as in cron or after su, but the usual directory exists, Get uses that: the daemon
// and the commands must agree, however each was started.
func Get() (Dirs, error) {
	return For(runtime.GOOS, func(name string) string {
		value := os.Getenv(name)
		if name == "XDG_RUNTIME_DIR" && value == "" {
			value = usualRuntimeDir("/run/user")
		}
		return value
	})
}

// usualRuntimeDir returns the runtime directory that systemd and elogind make for this
// user, or "" if it does not exist or is open to others.
func usualRuntimeDir(parent string) string {
	dir := parent + "/" + strconv.Itoa(os.Getuid())
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return ""
	}
	return dir
}

// For returns the directories on the system goos (a value of runtime.GOOS) with the
// environment getenv. TETHER_HOME takes precedence. Without it macOS and Windows follow
// their own conventions, and every other system the XDG base directory specification 0.8.
// An error names the variable that is missing or not an absolute path.
func For(goos string, getenv func(string) string) (Dirs, error) {
	s := system{goos: goos, getenv: getenv}
	if goos == "windows" {
		s.separator = `\`
	} else {
		s.separator = "/"
	}
	d, err := s.dirs()
	if err != nil {
		return Dirs{}, err
	}
	d.Runtime = s.short(d.Runtime)
	return d, nil
}

type system struct {
	goos, separator string
	getenv          func(string) string
}

func (s system) dirs() (Dirs, error) {
	if home := s.getenv(HomeVar); home != "" {
		if !s.isAbs(home) {
			return Dirs{}, fmt.Errorf("%s=%q is not an absolute path", HomeVar, home)
		}
		return Dirs{s.join(home, "config"), s.join(home, "state"), s.join(home, "run"), s.join(home, "cache")}, nil
	}
	switch s.goos {
	case "windows":
		return s.windows()
	case "darwin":
		return s.darwin()
	default:
		return s.xdg()
	}
}

// xdg ignores relative paths in the variables, as the specification demands.
func (s system) xdg() (Dirs, error) {
	home, err := s.required("HOME")
	place := func(name string, otherwise ...string) string {
		if dir := s.getenv(name); s.isAbs(dir) {
			return s.join(dir, "tether")
		}
		return s.join(home, otherwise...)
	}
	state := place("XDG_STATE_HOME", ".local", "state", "tether")
	d := Dirs{
		Config: place("XDG_CONFIG_HOME", ".config", "tether"),
		State:  state,
		Cache:  place("XDG_CACHE_HOME", ".cache", "tether"),
	}
	if dir := s.getenv("XDG_RUNTIME_DIR"); s.isAbs(dir) {
		d.Runtime = s.join(dir, "tether")
	} else {
		d.Runtime = s.join(state, "run")
	}
	return d, err
}

// darwin does not use TMPDIR for sockets: macOS removes files there that were not touched
// for three days.
func (s system) darwin() (Dirs, error) {
	home, err := s.required("HOME")
	support := s.join(home, "Library", "Application Support", "tether")
	return Dirs{
		Config:  support,
		State:   s.join(support, "state"),
		Runtime: s.join(support, "run"),
		Cache:   s.join(home, "Library", "Caches", "tether"),
	}, err
}

// windows lets only the configuration roam between machines.
func (s system) windows() (Dirs, error) {
	roaming, err1 := s.required("APPDATA")
	local, err2 := s.required("LOCALAPPDATA")
	return Dirs{
		Config:  s.join(roaming, "tether"),
		State:   s.join(local, "tether", "state"),
		Runtime: s.join(local, "tether", "run"),
		Cache:   s.join(local, "tether", "cache"),
	}, errors.Join(err1, err2)
}

func (s system) required(name string) (string, error) {
	dir := s.getenv(name)
	if dir == "" {
		return "", fmt.Errorf("%s is not set; set it, or set %s to the directory for tether's files", name, HomeVar)
	}
	if !s.isAbs(dir) {
		return "", fmt.Errorf("%s=%q is not an absolute path", name, dir)
	}
	return dir, nil
}

// short replaces a directory in which a socket's path would be too long by a directory in
// /tmp. That name depends only on the long one, so that every process finds it. Package
// ipc checks that the directory belongs to this user.
func (s system) short(dir string) string {
	limit := map[string]int{"linux": 107, "darwin": 103}[s.goos] // sun_path without its NUL, see ipc.MaxPath
	if limit == 0 || len(dir)+len(s.separator)+MaxSocketName <= limit {
		return dir
	}
	sum := sha256.Sum256([]byte(dir))
	return "/tmp/tether-" + hex.EncodeToString(sum[:8])
}

func (s system) join(dir string, names ...string) string {
	return strings.TrimRight(dir, s.separator) + s.separator + strings.Join(names, s.separator)
}

func (s system) isAbs(path string) bool {
	if s.goos != "windows" {
		return strings.HasPrefix(path, "/")
	}
	drive := len(path) >= 3 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
	return drive || strings.HasPrefix(path, `\\`)
}
