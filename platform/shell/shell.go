// Package shell knows the user's own shell. It does not start one: package pty does.
//
//	path := shell.Login() // "/usr/bin/zsh"
package shell

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
)

// Login returns the absolute path of the user's login shell: the account's, else SHELL, else a shell that every system of this kind has. It
// skips paths that are not executable files, and programs that keep people out (nologin). It may ask a name service on the network, for at
// most two seconds.
//
// On Windows, where accounts have no shell, it is SHELL if that is a program there, else the first available of PowerShell 7, Windows
// PowerShell and cmd.exe.
func Login() string { return login() }

// Find returns the path of the shell with a bare name, where that is not simply the first on PATH: on Windows pwsh, powershell, cmd, and
// bash, which means Git's and not the one that starts Linux. It returns an unknown name unchanged.
func Find(name string) string { return find(name) }

// Usual reports whether path is a shell that a program may name without choosing which program runs here: the user's login shell, or one
// that the system lists in /etc/shells. It blocks no longer than Login.
func Usual(path string) bool {
	return filepath.IsAbs(path) && !isBarrier(path) && (listed(path) || path == Login())
}

// choose returns the first usable shell among the candidates.
func choose(usable func(path string) bool, last string, candidates ...func() string) string {
	for _, candidate := range candidates {
		if path := candidate(); filepath.IsAbs(path) && !isBarrier(path) && usable(path) {
			return path
		}
	}
	return last
}

// isBarrier recognises programs that replace a shell to keep people out.
func isBarrier(path string) bool {
	switch filepath.Base(path) {
	case "nologin", "false", "true", "sync", "halt", "shutdown":
		return true
	}
	return false
}

// fromPasswd returns the shell of a user in lines of the form of passwd(5), "" when the user is not there or has none.
func fromPasswd(data []byte, uid int) string {
	want := strconv.Itoa(uid)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Split(line, ":"); len(fields) == 7 && fields[2] == want {
			return strings.TrimSpace(fields[6])
		}
	}
	return ""
}

// fromDirectory returns the value of the line "UserShell: /bin/zsh" that macOS's dscl(1) prints.
func fromDirectory(output []byte) string {
	for line := range bytes.Lines(output) {
		if value, ok := bytes.CutPrefix(line, []byte("UserShell:")); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}
