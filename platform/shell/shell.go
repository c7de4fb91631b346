// Package shell finds the user's own shell and its environment. It does not start shells
// in terminals: package pty does.
//
//	path := shell.Login() // "/usr/bin/zsh"
package shell

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
)

// Login returns the absolute path of the user's login shell: the account's shell,
// otherwise SHELL, otherwise /bin/sh. It skips paths that are not executable files, and
// programs that keep people out, such as nologin. It may ask a name service on the
// network, for at most four seconds.
//
// On Windows, where accounts have no shell, it returns SHELL if that is a program,
// otherwise the first available of PowerShell 7, Windows PowerShell and cmd.exe.
func Login() string { return login() }

// Find returns the path of the shell with a bare name if that is not simply the first on
// PATH. On Windows it knows pwsh, powershell, cmd and bash, which means Git's bash and
// not the one that starts Linux. It returns any other name unchanged.
func Find(name string) string { return find(name) }

// Usual reports whether path is one of this system's usual shells: the user's login
// shell, or a shell that the administrator lists in /etc/shells. So whoever names such a
// path cannot choose an arbitrary program. Usual blocks no longer than Login.
func Usual(path string) bool {
	return filepath.IsAbs(path) && !isBarrier(path) && (listed(path) || path == Login())
}

// choose returns the first usable shell among the candidates, or last if there is none.
func choose(usable func(path string) bool, last string, candidates ...func() string) string {
	for _, candidate := range candidates {
		if path := candidate(); filepath.IsAbs(path) && !isBarrier(path) && usable(path) {
			return path
		}
	}
	return last
}

// isBarrier reports whether path is a program that an account has in place of a shell to
// keep people out.
func isBarrier(path string) bool {
	switch filepath.Base(path) {
	case "nologin", "false", "true", "sync", "halt", "shutdown":
		return true
	}
	return false
}

// fromPasswd returns the shell of a user in lines in the format of passwd(5), or "" if
// the user is not listed or has no shell.
func fromPasswd(data []byte, uid int) string {
	want := strconv.Itoa(uid)
	for line := range strings.Lines(string(data)) {
		if fields := strings.Split(line, ":"); len(fields) == 7 && fields[2] == want {
			return strings.TrimSpace(fields[6])
		}
	}
	return ""
}

// fromDirectory returns the path in a line such as "UserShell: /bin/zsh" that macOS's
// dscl(1) prints, or "".
func fromDirectory(output []byte) string {
	for line := range bytes.Lines(output) {
		if value, ok := bytes.CutPrefix(line, []byte("UserShell:")); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}
