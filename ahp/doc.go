// Package ahp is the part of the Agent Host Protocol's vocabulary that terminals need:
// the types of the root and terminal channels, the types of sessions and chats that tool
// calls need, the handshake, subscriptions, action envelopes and reconnect, the pure
// reducers of these states, version negotiation, range checks, and the names of the
// client-terminals extension.
//
// It does no I/O, reads no clock and starts no goroutine. Sending is package jsonrpc,
// connecting is ahp/client, serving is host. Out of scope are changesets, and everything
// in sessions and chats except turns and tool calls: such actions survive as
// UnknownAction, such members of a state as raw JSON, and keys of _meta unchanged.
//
// # Two shapes
//
// Since version 0.9.0 a terminal reports its condition in "lifecycle"; before, in a bare
// "exitCode". A TerminalState or TerminalInfo always holds a Lifecycle. Reading accepts
// either shape; MarshalFor writes the shape of a version; json.Marshal writes the newest.
//
// # Two speeds
//
// Rare messages go through encoding/json. Terminal output does not: AppendOutput and
// AppendData write whole messages into the caller's buffer, Dispatch and EnvelopeView
// find the parts of a message without copying its text.
//
// # Trust
//
// All decoded data comes from outside. Decoding checks types; Validate checks ranges and
// lengths against the Max constants. Reading is lenient where a peer's wrong value must
// not hide the rest (an unreadable Claim has a Problem and an unknown holder); Validate
// is strict.
package ahp
