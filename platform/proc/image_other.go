//go:build !linux

package proc

import "errors"

// ForgetImage does nothing and returns errors.ErrUnsupported.
func ForgetImage() error { return errors.ErrUnsupported }
