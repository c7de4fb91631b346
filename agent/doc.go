// Package agent is the daemon: it composes the terminals, the links to hosts and the local door, and runs them until it is told to end.
//
//	a, err := agent.New(agent.Config{Dirs: d, Version: v})
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
//
// Order of starting: lock, log, hosts, socket, terminals of an earlier daemon, links; a request on the socket waits until then.
//
// Order of ending: attached clients are disconnected and requests refused. Terminals without a holder are killed, all terminals if the
// request says so, and hosts get a moment to learn of these exits. Then links close, for the other terminals as if the network had gone:
// those are left to their holders and the next daemon. Last the socket is removed, and the lock released.
package agent
