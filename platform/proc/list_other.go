//go:build !linux && !darwin && !windows

package proc

const hasTags = false

func scan(func(Info)) (bool, error) { return false, ErrUnsupported }

func lookup(int) (Info, error) { return Info{}, ErrUnsupported }

func mine(Info) bool { return false }

func tagged(int, string) (yes, unsure bool) { return false, false }
