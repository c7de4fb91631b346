//go:build !linux && !darwin && !windows

package shell

import "context"

func environment(context.Context, string, string) ([]string, error) { return nil, ErrUnsupported }
