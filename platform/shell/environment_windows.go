package shell

import (
	"context"
	"fmt"

	"golang.org/x/sys/windows"
)

// environment asks Windows for the environment of a program that is started at the next logon: the variables of the system and of the user
// in the registry. Windows' shells read nothing at a login that other programs would need.
func environment(context.Context, string, string) ([]string, error) {
	env, err := windows.GetCurrentProcessToken().Environ(false)
	if err != nil {
		return nil, fmt.Errorf("read this user's environment: %w", err)
	}
	return env, nil
}
