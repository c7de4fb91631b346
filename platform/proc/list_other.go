//go:build !linux && !darwin

package proc

func list() ([]Info, error) { return nil, ErrUnsupported }

func lookup(int) (Info, error) { return Info{}, ErrUnsupported }
