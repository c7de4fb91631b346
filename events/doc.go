// Package events tells what happens in terminals: lines that match, commands that finish, programs that exit, wait for the person, open ports or
// report problems, machines that go away and come back.
//
// An [Engine] serves one principal over [tether/agenttools.Terminals]; MCP's events and the command line's are both its. A subscription is a
// [Request]: a kind, arguments, and a cursor that says from where on. [Engine.Poll] answers with what there is, [Engine.Stream] goes on.
//
// Two families of kinds differ in where their events come from:
//
//   - Those of the log (lines, finished commands, exits) are found again at any time by reading the terminal from the cursor on, which holds
//     the terminals' own offsets. Nothing is remembered, and events outlive whoever serves them.
//   - Those of the moment (idle, ports, problems, waiting for input, ready, machines) are noticed while somebody is subscribed and kept in a
//     bounded journal; after a restart, a cursor of theirs is truncated.
//
// Whatever was there for a cursor and cannot be told any more is announced as truncated. Floods become at most one event a second for each subscription
// and terminal, with a count.
package events
