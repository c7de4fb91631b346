// Package agenttools has the tools with which agents use terminals: they list, read, wait
// for, start, type into and end them.
//
// A [Set] holds the tools of one principal. The implementation of [Terminals] decides
// what the principal may see and do; the daemon implements it over its pool and its
// policy, a host over its catalogue. An implementation that is not a [Controller] is read
// only, and the tools that change something are not offered.
//
// Calls have JSON arguments and return a typed [Result]; package mcp serves the tools to
// MCP clients, and the daemon carries out calls of hosts' sessions. [Wait] is also the
// wait of the command line.
//
// Output that reaches a model is rendered as text ([tether/screen]) and marked as
// untrusted. Nothing is kept between calls: reading and waiting use offsets that the
// caller provides.
package agenttools
