// Package acp is a proxy between an editor and an agent that speak the Agent Client
// Protocol (version 1, lines of JSON-RPC). It gives the agent terminals: it tells the
// agent that the editor has terminals, answers the agent's terminal/* requests itself,
// and shows their output to the editor in a form that the editor understands. All other
// lines pass byte for byte.
//
//	editor ──▶ lines ──▶ fromEditor ──▶ agent      initialize: terminal = true
//	editor ◀── fromAgent ◀── lines ◀── agent       terminal/*: answered here
//	   ▲                        │
//	   └── screen ◀── terminal ─┘── Terminals (the daemon)
//
// The package runs no commands itself; [Terminals] does, and the daemon's client
// implements it. The package is not an ACP library: it knows only the parts of the
// protocol that it changes. Version 2 of the protocol has no client terminals. If the
// agent answers with version 2, the proxy passes all further lines unchanged, except that
// it may add our MCP server to new sessions.
//
//	p := acp.New(acp.Options{Terminals: daemon, Mode: acp.Take})
//	err := p.Run(ctx, acp.Pipe{In: os.Stdin, Out: os.Stdout}, acp.Pipe{In: agentStdout, Out: agentStdin})
package acp
