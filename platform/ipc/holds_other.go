//go:build !linux

package ipc

import "errors"

// Holds reports errors.ErrUnsupported: the system does not report who holds a lock.
func Holds(int, string) (bool, error) { return false, errors.ErrUnsupported }

// Locker reports errors.ErrUnsupported, for the same reason.
func Locker(string) (int, error) { return 0, errors.ErrUnsupported }
