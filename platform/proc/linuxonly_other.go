//go:build !linux

package proc

import "errors"

func readsKeyboard(int) Reading { return Reading{} }

func masterHolders(Info, int) ([]int, error) { return nil, errors.ErrUnsupported }

// ForgetImage does nothing and returns errors.ErrUnsupported.
func ForgetImage() error { return errors.ErrUnsupported }

// rootOf returns "": every process sees the same files.
func rootOf(int) string { return "" }
