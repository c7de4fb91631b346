// Package local is the door for what runs on this machine: the person's own
// programs, user interfaces and agents. [Server] serves the terminals of a daemon
// over a socket that only this user reaches (platform/ipc), and on loopback TCP
// to who has a token; [Client] is the socket's other end.
//
// The language is HTTP with JSON bodies under versioned paths, because every
// program can speak it (curl --unix-socket), a WebSocket for an attached terminal
// (/v1/terminals/{ref}/attach) and one for user interfaces (/pty). docs/LOCAL-API.md
// is the contract.
//
// A ref is an id, the beginning of one, or a name. Errors are
// {"error":{"code","message","hint"}}; code.go holds every code.
//
// Who asks is found out before anything else (guard.go, tcp.go) and is in the
// request's context, see [ActorFrom]; what they may do is decided by agent/term.
// On the socket browsers have no business: a request that a page could have
// caused, by its Host or Origin, is refused. On TCP the Host must be ours, the page
// listed, and a token shown.
//
//	s := local.NewServer(local.Options{Access: pool.As, Daemon: d})
//	go s.Serve(listener)
//	…
//	c := local.NewClient(socket)
//	terminals, err := c.List(ctx)
package local
