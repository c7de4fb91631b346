// Package local is the door for programs on this machine: the person's own programs, user
// interfaces and agents. [Server] serves the terminals of a daemon over a socket that
// only this user reaches (platform/ipc), and on loopback TCP to clients with a token.
// agent/localclient is the socket's other end.
//
// The language is HTTP with JSON bodies under versioned paths, because every program can
// speak it (curl --unix-socket), a WebSocket for an attached terminal or a user interface
// (/pty). agent/localapi has the types; docs/LOCAL-API.md is the contract.
//
// The caller is identified before anything else (guard.go, tcp.go) and stored in the
// request's context, see [ActorFrom]; agent/term decides its rights. The socket refuses
// browsers: a request that a page could have caused, by its Host or Origin, is refused.
// On TCP the Host must be ours, the page listed, and a token sent.
//
//	s := local.NewServer(local.Options{Access: pool.As, Daemon: d})
//	go s.Serve(listener)
package local
