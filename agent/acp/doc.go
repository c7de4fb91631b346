// Package acp sits between an editor and an agent that speak the Agent Client Protocol (version 1, lines of JSON-RPC) and gives the agent
// terminals: it tells the agent that the editor has some, answers the agent's terminal/* requests itself, and shows their output to the
// editor in a way that the editor understands. All other lines pass byte for byte.
//
//	editor ──▶ lines ──▶ fromEditor ──▶ agent      initialize: terminal = true
//	editor ◀── fromAgent ◀── lines ◀── agent       terminal/*: answered here
//	   ▲                        │
//	   └── screen ◀── terminal ─┘── Terminals (the daemon)
//
// The package runs nothing itself: [Terminals] does, which the daemon's client implements. It is not an ACP library; it knows only the
// parts of the protocol that it changes. Version 2 of the protocol has no client terminals, so the proxy steps aside when an agent answers
// with it.
//
//	p := acp.New(acp.Options{Terminals: daemon, Mode: acp.Take})
//	err := p.Run(ctx, acp.Pipe{In: os.Stdin, Out: os.Stdout}, acp.Pipe{In: agentStdout, Out: agentStdin})
package acp
