package shell

import (
	"context"
	"fmt"

	"golang.org/x/sys/windows"
)

// environment asks Windows for the environment that a program gets at the next logon: the
// system's and the user's variables in the registry. At a login, Windows' shells read no
// files that set variables for other programs.
func environment(context.Context, string, string) ([]string, error) {
	env, err := windows.GetCurrentProcessToken().Environ(false)
	if err != nil {
		return nil, fmt.Errorf("read this user's environment: %w", err)
	}
	return env, nil
}
