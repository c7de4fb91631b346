// Package attach connects a person's terminal, or a script, to a terminal of the daemon's until one of them ends: tether attach, run and
// shell. The connection survives the daemon; see Session.
package attach
