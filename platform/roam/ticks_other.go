//go:build !linux

package roam

import (
	"context"
	"time"
)

func ticks(ctx context.Context, every time.Duration) (next func() error, stop func()) {
	return goTicks(ctx, every)
}
