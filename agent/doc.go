// Package agent is the daemon: it composes the terminals, the links to hosts and the
// local door, and runs them until it is told to end.
//
//	a, err := agent.New(agent.Config{Dirs: d, Version: v, Holder: p})
//	err = a.Run(ctx) // until ctx ends or a client asks it to shut down
//
// Files, all readable by the user alone; Run refuses to start otherwise:
//
//	State/hosts.json     paired hosts, and secrets unless the keyring has them
//	State/declared.json  which terminal belongs to which declaration, see agent/declared
//	State/calls/         which calls of a host have begun, see agent/toolcall
//	State/audit.jsonl    with older files beside it, see agent/audit
//	State/daemon.log     and daemon.log.1
//	Runtime/daemon.lock  held from the first moment to the last
//	Runtime/daemon.sock  there while requests are answered
//	Runtime/h, sh        sockets of holders, scripts of shells
//	State/holders.key    what daemons and holders know each other by; in Runtime if State cannot be written
//
// Order of starting: lock, log, hosts, socket, terminals of an earlier daemon, links; a
// request on the socket waits until then.
//
// Order of ending: attached clients are disconnected and requests refused. If the request
// says so, all terminals are killed, and hosts get a moment to learn of the exits;
// otherwise links close as if the network had gone, and the terminals are left to their
// holders and the next daemon. Last the socket is removed, and the lock released.
package agent
