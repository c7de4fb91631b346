package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Tests start shells, and a person's start-up files must not decide their results, so
// tests have an empty home. The go command's and git's files stay in the person's.

// newHome makes an empty home and the environment in which it is one. The caller removes
// it.
func newHome() (home string, env []string, err error) {
	kept, err := goKeeps()
	if err != nil {
		return "", nil, err
	}
	if own, err := os.UserHomeDir(); err == nil {
		if config := filepath.Join(own, ".gitconfig"); os.Getenv(gitConfigVar) == "" && exists(config) {
			kept = append(kept, gitConfigVar+"="+config) // it may say that this directory is safe: go build asks git
		}
	}
	if home, err = os.MkdirTemp("", "testrun-home"); err != nil {
		return "", nil, err
	}
	if err := switchOffTelemetry(home); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(home))
	}
	return home, homeEnv(os.Environ(), home, kept), nil
}

const gitConfigVar = "GIT_CONFIG_GLOBAL"

// goKeeps says where the go command has its settings and caches.
func goKeeps() (env []string, err error) {
	out, err := exec.Command("go", "env", "-json", "GOENV", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	var values map[string]string
	if err == nil {
		err = json.Unmarshal(out, &values)
	}
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	return env, nil
}

// elsewhere are variables besides HOME that lead shells and other programs to the
// person's files.
var elsewhere = []string{"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "ZDOTDIR", "ENV", "BASH_ENV"}

// homeEnv is env with another home and the kept files.
func homeEnv(env []string, home string, kept []string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(elsewhere, name)
	})
	out = append(append(out, kept...), "HOME="+home)
	if !slices.ContainsFunc(out, func(v string) bool { return strings.HasPrefix(v, raceVar+"=") }) {
		out = append(out, raceVar+"=atexit_sleep_ms=20")
	}
	return out
}

// raceVar has the settings of the race detector. Its programs sleep for a second when
// they end, unless it says otherwise; tests start hundreds.
const raceVar = "GORACE"

// switchOffTelemetry keeps the go command, which treats an empty home as its first run,
// from starting a writer there in the background.
func switchOffTelemetry(home string) error {
	for _, config := range []string{".config", "Library/Application Support"} { // of macOS
		dir := filepath.Join(home, config, "go", "telemetry")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "mode"), []byte("off\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
