// Package notify shows notifications on the person's desktop.
//
//	err := notify.Send(ctx, "tether", "agent bob asks to run: make")
package notify

import (
	"context"
	"errors"
)

// ErrUnsupported is returned if there is no desktop that shows notifications, or none
// that this package can reach.
var ErrUnsupported = errors.New("no desktop to show notifications on")

// Send shows a notification: over D-Bus on Linux, by the notification center on macOS, in
// the notification area on Windows, which a service does not have. title and body are
// plain text, not markup. Send blocks until the desktop has accepted the notification or
// ctx ends.
func Send(ctx context.Context, title, body string) error { return send(ctx, title, body) }

// Available reports whether Send finds something that shows notifications. On macOS and
// Windows that is known only when one is sent.
func Available() bool { return available() }

// Button is a choice that a notification offers.
type Button struct {
	Key   string // the result of Ask
	Label string // the text for the person
}

// ErrClosed is returned by Ask when the notification was closed before a button was
// pressed.
var ErrClosed = errors.New("the notification was closed")

// Ask shows a notification with buttons and returns the Key of the button that the person
// presses. It blocks until then. When ctx ends, it removes the notification and returns
// ctx's error. title and body are plain text, not markup.
//
// Every program of the user can register on the session's bus as the program that shows
// notifications. So Ask calls trust with the process that has done so, and shows nothing
// if trust returns an error. Ask returns ErrUnsupported if the desktop has no buttons, if
// other programs can press them (see pressable), and on other systems than Linux.
func Ask(ctx context.Context, title, body string, buttons []Button, trust func(pid int) error) (key string, err error) {
	return ask(ctx, title, body, buttons, trust)
}
