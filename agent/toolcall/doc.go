// Package toolcall answers calls of this machine's tools by the sessions of one agent
// host.
//
// A [Desk] outlives the connections to its host. While it is on, it follows the host's
// sessions, offers them the tools (session/activeClientSet) and watches their pending
// requests: one of the kind toolClientExecution that names this client is a call.
// Options.Run carries a call out; this package makes sure that it runs at most once and
// is answered once.
//
// The life of a call:
//
//	asked ──▶ running ──▶ ended ──(told, the host takes the request down)──▶ confirmed
//	  │          └─(the request is taken down)──▶ void: cancelled, not answered
//	  └─(unknown tool, too many, invalid arguments)──▶ ended
//
// The key of a call is written down before it runs. A repeated call that is known to have
// begun is not run again: it gets its former answer or, if another daemon began it, the
// answer that its outcome is not known. A call continues while the connection is lost;
// its answer waits for the next connection, which shows whether the host still wants it.
//
// While a desk is off nothing about sessions is sent or asked for.
package toolcall
