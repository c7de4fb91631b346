// Command bench measures tether and prints one table with a floor beside each value.
//
// Where possible, a speed is a ratio to a yardstick that is measured in the same run, in
// rounds that alternate: a child's pty that is drained without a network, the echo of a
// key at a bare pty, tmux's commands. It runs bin/tether and bin/tether-host in a home of
// their own. This process is the observer and the yardsticks; the children are this
// binary, too.
//
//	make bench                   # some minutes; bench-host and bench-cluster do the rest
//	make bench BENCHFLAGS=-quick # about a minute, less exact
//	go build -C bench -o ../bin/bench . && bin/bench -help
//
// It is a module of its own, so that the programs' module has neither its code nor its
// tests. It runs at the top of the repository.
//
// A missed floor changes the exit status only with -strict: a busy machine must not fail
// tests. docs/PERFORMANCE.md explains the rows.
package main
