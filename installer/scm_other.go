//go:build !windows

package installer

import (
	"context"
	"errors"
)

// RunAsService is for Windows.
func RunAsService(func(context.Context) error) error {
	return errors.New("only Windows runs services like this; see tether service install")
}
