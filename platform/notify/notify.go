// Package notify shows notifications on the person's desktop.
//
//	err := notify.Send(ctx, "tether", "agent bob asks to run: make")
package notify

import (
	"context"
	"errors"
)

// ErrUnsupported is returned where there is no desktop that shows notifications, or none that this package can reach.
var ErrUnsupported = errors.New("no desktop to show notifications on")

// Send shows a notification: over D-Bus on Linux, by the notification center on macOS, in the notification area on Windows, where a
// service has none. Neither text is markup. It blocks until the desktop has taken it or ctx ends.
func Send(ctx context.Context, title, body string) error { return send(ctx, title, body) }
