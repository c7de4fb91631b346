// Package localapi is the language of the local door: the requests, answers and messages that agent/local serves, the codes of its errors,
// and the exit statuses of the command line. It holds no state, and both ends import it. docs/LOCAL-API.md is the contract.
//
// A ref is an id, the beginning of one, or a name of a terminal. Errors are {"error":{"code","message","hint"}}.
package localapi

// SchemaVersion is the version of the JSON that commands print and the local door answers. It changes only when a field goes away or changes its
// meaning.
const SchemaVersion = 1

// Host is the only Host header that is answered: no name a resolver knows.
const Host = "tether"

// DefaultAgent is the principal of an MCP client that sends none. It is not the local user, because agents may do less.
const DefaultAgent = "mcp"

// MCPProtocol is the protocol to which a connection is upgraded for a session of lines.
const MCPProtocol = "tether-mcp"

// Bounds of requests and answers, in bytes.
const (
	MaxBody     = 1 << 20   // a request's body: a large environment fits
	MaxFrame    = 256 << 10 // one WebSocket message: a pasted file comes in several
	AttachChunk = 32 << 10  // most output in one frame of an attached terminal
	ReadChunk   = 32 << 10  // most output that is passed on at a time, as in one Event
)

// Headers and trailers.
const (
	// PrincipalHeader makes a request that of an agent: its value is the agent's principal. It can only lower the request's rights, so any
	// client of the socket may send it; a program that an agent has started is that agent's.
	PrincipalHeader = "Tether-Principal"
	// OffsetsHeader in the answer says that each binary message begins with the raw offset after its data, as OffsetBytes bytes, big-endian, so
	// that the client can go on from there with another daemon. It asks for that by offsets=1.
	OffsetsHeader = "Tether-Offsets"
	OffsetBytes   = 8
	// DroppedTrailer, after a follower's output, reports that it ends because the daemon does, not the terminal.
	DroppedTrailer = "Tether-Dropped"
	// MaskedTrailer after output that is masked says how many places of it are.
	MaskedTrailer = "Tether-Masked"
)

// Files next to the socket. A daemon holds LockName locked from its start to its end; its replacement, which asks it to end, holds NextName
// until it answers itself.
const (
	LockName = "daemon.lock"
	NextName = "daemon.next"
)
