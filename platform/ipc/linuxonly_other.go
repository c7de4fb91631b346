//go:build !linux

package ipc

import (
	"errors"
	"net"
)

// Holds reports errors.ErrUnsupported: the system does not report who holds a lock.
func Holds(int, string) (bool, error) { return false, errors.ErrUnsupported }

// Locker reports errors.ErrUnsupported, for the same reason.
func Locker(string) (int, error) { return 0, errors.ErrUnsupported }

// Unsent is how many bytes that were written to a TCP socket the other side has not
// acknowledged yet. It is false if the system does not tell: here it is not asked.
func Unsent(*net.TCPConn) (n int, ok bool) { return 0, false }
