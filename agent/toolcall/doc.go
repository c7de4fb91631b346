// Package toolcall answers the calls of this machine's tools that come from the
// sessions of one agent host.
//
// A [Desk] outlives the connections to its host. While it is on, it follows the
// host's sessions, offers them the tools (session/activeClientSet) and watches
// what they wait for: a request of the kind toolClientExecution that names this
// client is a call. What a call does is decided elsewhere, by Options.Run; here
// it is made sure that it is done at most once and answered once.
//
// The life of a call:
//
//	asked ──▶ running ──▶ ended ──(told, the host takes the request down)──▶ confirmed
//	  │          └─(the request is taken down)──▶ void: cancelled, not answered
//	  └─(unknown tool, too many, arguments that are none)──▶ ended
//
// The key of a call is written down before it runs. One that is asked for again
// and is known to have begun is not run again: it gets the answer that it got, or,
// when another daemon began it, the answer that its outcome is not known.
// A call goes on while the connection is lost; its answer waits for the next one,
// which says whether the host still wants it.
//
// While a desk is off nothing about sessions is sent or asked for.
package toolcall
