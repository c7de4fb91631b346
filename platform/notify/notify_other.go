//go:build !linux && !darwin && !windows

package notify

import "context"

func available() bool { return false }

func send(context.Context, string, string) error { return ErrUnsupported }
