// Package events reports events in terminals: lines that match, commands that finish,
// programs that exit, wait for the person, open ports or report problems, machines that
// go away and come back.
//
// An [Engine] serves one principal over [tether/agenttools.Terminals]; it serves both
// MCP's events and the command line's. A subscription is a [Request]: a kind, arguments,
// and a cursor, where it starts. [Engine.Poll] returns available events, [Engine.Stream]
// also later ones.
//
// Two families of kinds differ in where their events come from:
//
//   - Events of the log (lines, finished commands, exits) can be found again at any time
//     by reading the terminal from the cursor on, which contains the terminals' own
//     offsets. The engine stores nothing, and these events outlive the process that
//     serves them.
//   - Events of the moment (idle, ports, problems, waiting for input, ready, machines)
//     are noticed while somebody is subscribed, and kept in a bounded journal; after a
//     restart, their cursors are truncated.
//
// If events after a cursor can no longer be reported, the subscriber is told that they
// are truncated. Floods become at most one event a second for each subscription and
// terminal, with a count.
package events
