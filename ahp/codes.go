package ahp

// Error codes of AHP (types/common/errors.ts). They are untyped so that they serve as a jsonrpc.Code without
// conversion; the standard JSON-RPC codes are in package jsonrpc.
const (
	CodeSessionNotFound            = -32001 // VS Code answers a subscribe to any unknown channel with it
	CodeProviderNotFound           = -32002
	CodeSessionAlreadyExists       = -32003
	CodeTurnInProgress             = -32004
	CodeUnsupportedProtocolVersion = -32005 // data: VersionErrorData
	CodeAuthRequired               = -32007
	CodeNotFound                   = -32008 // unknown resource; for reconnect, unknown clientId
	CodePermissionDenied           = -32009
	CodeAlreadyExists              = -32010
	CodeConflict                   = -32011
)

// IsGone reports whether code says that a channel does not exist. Hosts use either of two codes for it.
func IsGone(code int64) bool { return code == CodeNotFound || code == CodeSessionNotFound }
