// Package attach connects a person's terminal, or a script, to a terminal of the daemon
// until one of them ends, for tether attach, run and shell. The connection survives the
// daemon's end, see Session.
package attach
