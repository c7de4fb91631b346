//go:build !linux && !darwin && !windows

package shell

import "context"

func runLogin(context.Context, string, []string, []string) ([]byte, error) {
	return nil, ErrUnsupported
}
