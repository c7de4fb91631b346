// Package notify shows notifications on the person's desktop.
//
//	err := notify.Send(ctx, "tether", "agent bob asks to run: make")
package notify

import (
	"context"
	"errors"
)

// ErrUnsupported is returned if there is no desktop that shows notifications, or none that this package can reach.
var ErrUnsupported = errors.New("no desktop to show notifications on")

// Send shows a notification: over D-Bus on Linux, by the notification center on macOS, in the notification area on Windows, where a service
// has none. Neither text is markup. It blocks until the desktop has taken it or ctx ends.
func Send(ctx context.Context, title, body string) error { return send(ctx, title, body) }

// Button is a choice that a notification offers.
type Button struct {
	Key   string // the result of Ask
	Label string // the text for the person
}

// ErrClosed is returned by Ask when the notification is closed and no button was pressed.
var ErrClosed = errors.New("the notification was closed")

// Ask shows a notification with buttons, and returns the Key of the one that the person has pressed. It blocks until then, and takes the
// notification back when ctx ends. Neither text is markup.
//
// Every program of the user can say on the session's bus that it shows notifications. So trust is asked about the process that does, and
// nothing is shown where it returns an error. Ask returns ErrUnsupported where the desktop has no buttons, where a program can press them
// (see pressable), and on other systems than Linux.
func Ask(ctx context.Context, title, body string, buttons []Button, trust func(pid int) error) (key string, err error) {
	return ask(ctx, title, body, buttons, trust)
}
