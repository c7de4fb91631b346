//go:build !linux && !windows

package proc

import "errors"

// AdoptOrphans reports errors.ErrUnsupported: only Linux knows such parents.
func AdoptOrphans() error { return errors.ErrUnsupported }

// ReapOrphans returns at once: nothing was adopted.
func ReapOrphans(int, <-chan struct{}) {}

// WaitForAll returns at once: nothing was adopted.
func WaitForAll() {}

// Children reports false: nothing was adopted.
func Children() bool { return false }

// AgentMembers reports errors.ErrUnsupported: only Windows has jobs.
func AgentMembers(string) ([]int, error) { return nil, errors.ErrUnsupported }
