// Package local is the door for the person's own programs on this machine: the
// commands, and later user interfaces. [Server] serves the terminals of a daemon
// over a socket that only this user reaches (platform/ipc); [Client] is its other
// end.
//
// The language is HTTP with JSON bodies under versioned paths, because every
// program can speak it (curl --unix-socket), and a WebSocket for an attached
// terminal:
//
//	GET    /v1/status
//	GET    /v1/terminals                 POST /v1/terminals (SpawnRequest)
//	GET    /v1/terminals/{ref}           POST /v1/terminals/{ref}/kill
//	GET    /v1/terminals/{ref}/output?view=text|screen|raw&lines=N&follow=1
//	GET    /v1/terminals/{ref}/attach?from=OFFSET|tail=BYTES  (WebSocket)
//	GET    /v1/terminals/{ref}/events?from=OFFSET&lease=1     (lines of JSON, each an Event)
//	POST   /v1/hosts (PairRequest)       DELETE /v1/hosts/{name}
//	POST   /v1/shutdown
//
// A ref is an id, the beginning of one, or a name. On the WebSocket binary frames
// are the terminal's bytes, both ways; text frames are a [Control]. Errors are
// {"error":{"code","message","hint"}}; code.go holds every code.
//
// Browsers have no business here: a request that a page could have caused, by
// its Host or Origin, is refused before anything else is looked at.
//
//	s := local.NewServer(local.Options{Access: pool.As, Daemon: d})
//	go s.Serve(listener)
//	…
//	c := local.NewClient(socket)
//	terminals, err := c.List(ctx)
package local
