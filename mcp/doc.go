// Package mcp serves the tools of [tether/agenttools] through the Model Context Protocol.
//
// A [Server] serves one principal: every session of it, over a byte stream ([Server.Serve]) or streamable HTTP ([Server.ServeHTTP]), sees
// the same terminals, so that ownership depends on the principal and not on a session.
//
//	s := mcp.New(mcp.Options{Tools: agenttools.New(agenttools.Options{Terminals: terminals}), Version: "1.0"})
//	defer s.Close()
//	err := s.Serve(ctx, conn)
//
// Only subscriptions are kept per session.
package mcp
