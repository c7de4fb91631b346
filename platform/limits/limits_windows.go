package limits

import (
	"time"

	"golang.org/x/sys/windows"
)

func cpuTime(time.Duration, []string) ([]string, error) { return nil, ErrUnsupported }

func free(dir string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var mine uint64
	err = windows.GetDiskFreeSpaceEx(name, &mine, nil, nil)
	return mine, err
}

func files() (uint64, error) { return 0, ErrUnsupported }
