// Package localapi is the language of the local door: the requests, answers and messages
// that agent/local serves, the codes of its errors, and the exit statuses of the command
// line. It holds no state, and both ends import it. docs/LOCAL-API.md is the contract.
//
// A ref is an id, the beginning of one, or a name of a terminal. Errors are
// {"error":{"code","message","hint"}}.
package localapi

// SchemaVersion is the version of the JSON that commands print and the local door
// answers. It changes only when a field goes away or gets another meaning.
const SchemaVersion = 1

// Host is the only value of the Host header that the socket answers. No resolver knows
// this name.
const Host = "tether"

// DefaultAgent is the principal of an MCP client that names none. The local user would
// have more rights than an agent.
const DefaultAgent = "mcp"

// MCPProtocol is the protocol to which an HTTP connection is upgraded for an MCP session,
// whose messages are lines.
const MCPProtocol = "tether-mcp"

// Bounds of requests and answers, in bytes.
const (
	MaxBody     = 1 << 20   // a request's body
	MaxUserBody = 16 << 20  // the body of the person's request to start a terminal: pty.MaxStart, as JSON
	MaxFrame    = 256 << 10 // one WebSocket message; a pasted file comes in several messages
	AttachChunk = 32 << 10  // most output in one frame of an attached terminal
	FeedChunk   = 32 << 10  // most bytes of standard input in one frame
	ReadChunk   = 32 << 10  // most output that is passed on at a time, as in one piece
)

// Headers and trailers.
const (
	// PrincipalHeader in a request names the agent that makes the request. It can only
	// lower the request's rights, so any client of the socket may send it. A program that
	// an agent has started counts as that agent in any case.
	PrincipalHeader = "Tether-Principal"
	// OffsetsHeader in an answer says that each binary message begins with the raw offset
	// after its data, as OffsetBytes bytes, big-endian. With that offset the client can
	// go on at another daemon. The client asks for the offsets by the query parameter
	// offsets=1.
	OffsetsHeader = "Tether-Offsets"
	OffsetBytes   = 8
	// PieceBytes is the length of the head of a piece of a follower's output with
	// offsets: the raw offset after it, the number of masked places in it (4 bytes), its
	// length (4 bytes). PieceControl instead of that number says that the piece is a
	// Control.
	PieceBytes   = OffsetBytes + 4 + 4
	PieceControl = 1 << 31
	// FeaturesHeader in an answer lists what the daemon knows beside the first version of
	// the door, separated by commas: FeatureFeed and so on. A client must not use what
	// the daemon does not list.
	FeaturesHeader = "Tether-Features"
	// DroppedTrailer, after a follower's output, says that the output ends because the
	// daemon ends, not the terminal.
	DroppedTrailer = "Tether-Dropped"
	// MaskedTrailer, after output in which secrets are masked, is the number of masked
	// places.
	MaskedTrailer = "Tether-Masked"
)

// Features of a daemon.
const (
	FeatureFeed   = "feed"   // SpawnRequest.Feed
	FeatureBytes  = "bytes"  // fields for text that is not UTF-8
	FeatureLimits = "limits" // limits of SpawnRequest and DeclareRequest
	FeatureMarks  = "marks"  // sizes, losses and the exit in followed output
	FeaturePort   = "port"   // SpawnRequest.Port

	FeatureForwardBrowser = "forward-browser" // SpawnRequest.ForwardBrowser

	Features = FeatureFeed + ", " + FeatureBytes + ", " + FeatureLimits + ", " + FeatureMarks + ", " + FeatureForwardBrowser + ", " + FeaturePort // all of this program
)

// Files next to the socket. A daemon holds a lock on LockName from its start to its end.
// A new daemon that asks it to end holds a lock on NextName until it answers requests
// itself.
const (
	LockName = "daemon.lock"
	NextName = "daemon.next"
)
