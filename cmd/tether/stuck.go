package main

import (
	"context"
	"errors"
	"time"

	"tether/agent/local"
	"tether/cmd/tether/internal/doctor"
	"tether/platform/dirs"
)

const (
	// listTimeout is how long the daemon may take to list terminals, also where looking for ports takes seconds.
	listTimeout = 10 * time.Second
	// makeWayTimeout is how long it may take to leave its terminals to another.
	makeWayTimeout = 20 * time.Second
)

// stuck turns a missing answer into an error with a remedy. Other errors stay unchanged.
func stuck(d dirs.Dirs, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if foreign := d.Check(); foreign != nil {
		return foreign
	}
	return &hinted{&local.Error{Code: local.CodeTimeout, Message: "the daemon does not answer"}, doctor.StuckFix(d)}
}
