//go:build !linux && !darwin && !windows

package limits

func free(string) (uint64, error) { return 0, ErrUnsupported }

func files() (uint64, error) { return 0, ErrUnsupported }
