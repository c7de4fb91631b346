// Command bench measures tether and prints one table with a floor beside each value.
//
// Where possible, a speed is a ratio to a yardstick that is measured in the same run, in rounds that alternate: a child's pty that is drained
// without a network, the echo of a key at a bare pty, memcpy for the scanner. It runs bin/tether and bin/tether-host in a home of their
// own. This process is the observer and the yardsticks; the children are this binary, too.
//
//	go run ./internal/bench          # about seven minutes
//	go run ./internal/bench -quick   # under a minute, less exact
//
// A missed floor changes the exit status only with -strict: a busy machine must not fail tests. docs/PERFORMANCE.md explains the rows.
package main
