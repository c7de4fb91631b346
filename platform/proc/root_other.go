//go:build !windows

package proc

func isLocalSystem() bool { return false }
