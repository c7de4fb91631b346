//go:build !linux && !windows

package limits

func join(Group, []string, []string) ([]string, []string, error) { return nil, nil, ErrUnsupported }
