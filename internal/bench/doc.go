// Command bench measures tether and prints one table with a floor beside each value.
//
// Speeds are ratios from one run on one machine, in rounds that alternate between the subject and its yardstick: a child's pty drained with
// no network, a pty of its own for the echo of a key, memcpy for the scanner. The processes are the real ones, bin/tether and
// bin/tether-host in a home of their own; the observer and the yardsticks are this process, the children are this binary again.
//
//	go run ./internal/bench          # about seven minutes
//	go run ./internal/bench -quick   # under a minute, less exact
//
// A missed floor is shown and changes the exit status only with -strict: a busy machine must not fail tests. docs/PERFORMANCE.md explains
// each row.
package main
