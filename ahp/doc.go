// Package ahp is the vocabulary of the Agent Host Protocol as far as terminals need it: the types of the root and
// terminal channels, of sessions and chats as far as their tool calls go, the handshake, subscriptions, action envelopes and
// reconnect, the pure reducers of these states, version negotiation, range checks, and the names of the client-terminals
// extension.
//
// It does no I/O, reads no clock and starts no goroutine. Sending is package jsonrpc, connecting is ahp/client, serving
// is host. What of sessions and chats is not about turns and tool calls, and changesets, are out of scope: such actions
// survive as UnknownAction, such members of a state as raw JSON, and keys of _meta as they came.
//
// # Two shapes
//
// Since version 0.9.0 a terminal says how it is in "lifecycle"; before, a bare "exitCode" did. A TerminalState or
// TerminalInfo always holds a Lifecycle. Reading takes either shape; MarshalFor writes the one a version knows;
// json.Marshal writes the newest.
//
// # Two speeds
//
// Everything that is rare goes through encoding/json. Terminal output does not: AppendOutput and AppendData write whole
// messages into a buffer of the caller, DecodeDispatch and DecodeEnvelope find the parts of one without copying its text.
//
// # Trust
//
// Whatever is decoded comes from outside. Decoding checks types; Validate checks ranges and lengths against the Max
// constants. Reading is lenient where a wrong value of a peer must not hide the rest (a Claim that cannot be
// read has a Problem and is held by nobody we know); Validate is strict.
package ahp
