//go:build !linux

package proc

import "errors"

func readsKeyboard(int) Reading { return Reading{} }

func masterHolders(Info, int) ([]int, error) { return nil, errors.ErrUnsupported }

func exeOf(int) string { return "" }

// Privileged reports false: it is asked where MasterHolders tells.
func Privileged(Ancestor) bool { return false }

// ForgetImage does nothing and returns errors.ErrUnsupported.
func ForgetImage() error { return errors.ErrUnsupported }
