// Package mcp gives agents terminals through the Model Context Protocol.
//
// A [Server] serves one principal: every session of it, over a byte stream
// ([Server.Serve]) or streamable HTTP ([Server.ServeHTTP]), sees the same
// terminals, so that ownership hangs on who somebody is and not on a session.
// What the principal may see and do is decided behind the interface
// [Terminals]; the daemon implements it over its pool and its policy, a host
// over its catalogue. An implementation that is not a [Controller] is read
// only, and the tools that change something are not offered.
//
//	s := mcp.New(mcp.Options{Terminals: terminals, Version: "1.0"})
//	defer s.Close()
//	err := s.Serve(ctx, conn)
//
// Output that reaches a model is rendered as text ([tether/mcp/screen]) and
// marked as untrusted. Nothing is kept per session but subscriptions: reading
// and waiting go by offsets that the caller brings along.
package mcp
