//go:build !linux

package notify

import "context"

// ask always returns ErrUnsupported: macOS's notification center has buttons only for
// signed applications, and Windows's notification area has none.
func ask(context.Context, string, string, []Button, func(int) error) (string, error) {
	return "", ErrUnsupported
}
