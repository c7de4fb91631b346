//go:build !windows

package installer

import (
	"context"
	"errors"
)

// RunAsService always fails: only Windows needs it.
func RunAsService(func(context.Context) error) error {
	return errors.New("only Windows runs services like this; see tether service install")
}
