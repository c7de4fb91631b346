//go:build !linux && !darwin && !windows

package pty

import (
	"context"
	"time"
)

// PTY is a running program and its terminal. There is none on this system yet: Start always fails.
type PTY struct{}

// Start returns ErrUnsupported.
func Start(Command) (*PTY, error) { return nil, ErrUnsupported }

// Read returns ErrUnsupported.
func (*PTY) Read([]byte) (int, error) { return 0, ErrUnsupported }

// WaitReadable returns ErrUnsupported.
func (*PTY) WaitReadable() error { return ErrUnsupported }

// Write returns ErrUnsupported.
func (*PTY) Write([]byte) (int, error) { return 0, ErrUnsupported }

// Resize returns ErrUnsupported.
func (*PTY) Resize(Size) error { return ErrUnsupported }

// Pid is 0.
func (*PTY) Pid() int { return 0 }

// Wait returns a zero Exit.
func (*PTY) Wait() Exit { return Exit{} }

// Exited is never closed.
func (*PTY) Exited() <-chan struct{} { return nil }

// Kill returns ErrUnsupported.
func (*PTY) Kill(context.Context, time.Duration) error { return ErrUnsupported }

// Signal returns ErrUnsupported.
func (*PTY) Signal(string) error { return ErrUnsupported }

// Close returns ErrUnsupported.
func (*PTY) Close() error { return ErrUnsupported }

func systemConsole() (string, error) { return "", ErrUnsupported }
