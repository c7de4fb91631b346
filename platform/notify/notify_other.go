//go:build !linux && !darwin && !windows

package notify

import "context"

func send(context.Context, string, string) error { return ErrUnsupported }
