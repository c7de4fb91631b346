package main

import (
	"math"
	"runtime/debug"

	"tether/agent/config"
)

// overhead is what a daemon holds besides the output that it keeps, in bytes: itself, its terminals and some garbage. Many floods need
// 30 MiB of it.
const overhead = 48 << 20

// limitMemory makes the garbage collector work harder near what is configured, where it would otherwise let the heap grow to twice
// what is kept. A GOMEMLIMIT in the environment comes first.
func limitMemory(c config.Config) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(int64(c.Terminals.TotalLogBytes) + overhead)
	}
}
