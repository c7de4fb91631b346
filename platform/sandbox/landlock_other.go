//go:build !linux

package sandbox

import "fmt"

const hasBwrap = false

func landlockMissing() error { return fmt.Errorf("%w: Landlock is for Linux", ErrUnsupported) }

func confine(Profile) error { return landlockMissing() }

func become(string, []string) error { return ErrUnsupported }
