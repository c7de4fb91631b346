//go:build !linux

package proc

func listens(string, int) (bool, error) { return false, ErrUnsupported }

func allListeners() (map[string][]Listener, error) { return nil, ErrUnsupported }
