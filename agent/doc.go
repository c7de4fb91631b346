// Package agent is the daemon: it composes the terminals, the links to hosts
// and the local door, and runs them until it is told to end.
//
//	a, err := agent.New(agent.Config{Dirs: d, Version: v})
//	err = a.Run(ctx) // until ctx ends or somebody asks it to shut down
//
// Files, all the user's alone; Run refuses to start where they are not:
//
//	State/hosts.json     paired hosts, and secrets unless the keyring has them
//	State/declared.json  which terminal is which declared one, see agent/declared
//	State/calls/         which calls of a host have begun, see agent/toolcall
//	State/audit.jsonl    with older files beside it, see agent/audit
//	State/daemon.log     and daemon.log.1
//	Runtime/daemon.lock  held from the first moment to the last
//	Runtime/daemon.sock  there while requests are answered
//	Runtime/h, sh        sockets of holders, scripts of shells
//
// Order of starting: lock, log, hosts, socket, terminals of an earlier daemon,
// links; whoever finds the socket waits until then and is answered.
//
// Order of ending: attached clients are let go and requests refused. Terminals
// without a holder are killed, all of them if that was asked for, and hosts get a
// moment to hear of these exits. Then links close, for the other terminals as if
// the network had gone: those are left to their holders and the next daemon. Last
// the socket goes, and the lock.
package agent
