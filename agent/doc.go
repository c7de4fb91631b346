// Package agent is the daemon: it composes the terminals, the links to hosts
// and the local door, and runs them until it is told to end.
//
//	a, err := agent.New(agent.Config{Dirs: d, Version: v})
//	err = a.Run(ctx) // until ctx ends or somebody asks it to shut down
//
// Files: State/hosts.json (paired hosts with their credentials), State/daemon.log,
// Runtime/daemon.sock and daemon.lock. All are the user's alone, and Run refuses to
// start where they are not.
//
// Order of starting: lock, log, hosts, socket, links; whoever finds the socket is
// answered. Order of ending: attached clients are let go and requests refused,
// terminals are killed, hosts get a moment to hear of the exits, links close, then
// the socket goes and at last the lock.
package agent
