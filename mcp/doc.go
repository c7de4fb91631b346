// Package mcp serves the tools of [tether/agenttools] through the Model Context Protocol.
//
// A [Server] serves one principal. All its sessions, over a byte stream ([Server.Serve])
// or streamable HTTP ([Server.ServeHTTP]), see the same terminals: terminals belong to
// the principal, not to a session.
//
//	s := mcp.New(mcp.Options{Tools: agenttools.New(agenttools.Options{Terminals: terminals}), Version: "1.0"})
//	defer s.Close()
//	err := s.Serve(ctx, conn)
//
// Only subscriptions are kept per session.
package mcp
