package main

import (
	"math"
	"runtime/debug"

	"tether/agent/config"
)

// overhead is the memory of a daemon besides the output that it keeps, in bytes: itself, its terminals and some garbage. Many floods need
// 30 MiB of it.
const overhead = 48 << 20

// limitMemory makes the garbage collector work harder near the configured amount, where it would otherwise let the heap grow to twice the
// kept amount. A GOMEMLIMIT in the environment has priority.
func limitMemory(c config.Config) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(int64(c.Terminals.TotalLogBytes) + overhead)
	}
}
