//go:build !linux

package notify

import "context"

// ask has nothing here: the notification center of macOS has buttons for signed applications alone, and the notification area of Windows
// has none.
func ask(context.Context, string, string, []Button, func(int) error) (string, error) {
	return "", ErrUnsupported
}
