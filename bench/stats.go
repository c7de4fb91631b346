package main

import (
	"slices"
	"time"
)

// median returns the middle one of values, the upper one of two; 0 if there are none.
func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile returns the value below which the share q of values lies; 0 if there are none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// millis is d in milliseconds.
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
