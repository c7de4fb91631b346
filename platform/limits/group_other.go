//go:build !linux && !windows

package limits

func canGroup() bool { return false }

func join(Group, []string, []string) ([]string, []string, error) { return nil, nil, ErrUnsupported }
