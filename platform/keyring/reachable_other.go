//go:build !linux

package keyring

// reachable knows no reason against: the keyring is part of the system.
func reachable() error { return nil }
