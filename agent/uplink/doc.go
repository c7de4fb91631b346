// Package uplink lends terminals to one agent host over the Agent Host Protocol.
//
// A [Link] dials the host, identifies itself, and announces every terminal that is lent
// to it as a client-executed one. Per terminal a publisher pulls from the terminal's log
// and dispatches text, command boundaries and the exit; the host's acknowledgements are
// its clock. A lost connection costs the child nothing: the link reconnects with jittered
// back-off, announces the same terminals under the same URIs and continues after the last
// text that the host has.
//
// A connection counts as lost when nothing arrived from the host for two heartbeats.
// After a move, see [Link.Moved], it is asked at once.
//
// Only output goes up. Any action of a host on a terminal of ours is refused, except its
// disposal.
//
// The life of a link:
//
//	connecting ──▶ online ──(connection lost)──▶ waiting ──(back-off, a move)──▶ connecting
//	     │            └─(host takes no terminals)─────────▶ unsupported ──(rarely)──▶ connecting
//	     ├─(401, 403)──▶ refused ──(rarely)──▶ connecting
//	     └─(no answer)──▶ waiting
package uplink
