//go:build !linux && !darwin && !windows

package ipc

import (
	"context"
	"net"
)

// MaxPath is the longest socket path in bytes.
const MaxPath = 107

// Held is a lock held by this process.
type Held struct{}

// Lock returns ErrUnsupported.
func Lock(string) (*Held, error) { return nil, ErrUnsupported }

// Close returns ErrUnsupported.
func (*Held) Close() error { return ErrUnsupported }

// Listener accepts connections of this user's programs only.
type Listener struct{}

// Listen returns ErrUnsupported.
func Listen(string) (*Listener, error) { return nil, ErrUnsupported }

// Accept returns ErrUnsupported.
func (*Listener) Accept() (net.Conn, error) { return nil, ErrUnsupported }

// Refused is 0.
func (*Listener) Refused() int64 { return 0 }

// Addr is nil.
func (*Listener) Addr() net.Addr { return nil }

// Close returns ErrUnsupported.
func (*Listener) Close() error { return ErrUnsupported }

// Dial returns ErrUnsupported.
func Dial(context.Context, string) (net.Conn, error) { return nil, ErrUnsupported }
