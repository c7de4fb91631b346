package pty

import "errors"

// LookAt returns errors.ErrUnsupported: only programs at a console can ask it how it
// handles keys, and Windows does not report who reads them.
func LookAt(uintptr, int) (Look, error) { return Look{}, errors.ErrUnsupported }

// Look returns errors.ErrUnsupported, see LookAt.
func (p *PTY) Look() (Look, error) { return LookAt(0, 0) }
