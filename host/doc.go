// Package host is a reference agent host: the server side of the Agent Host Protocol for its root, terminal, session and chat channels,
// with the proposal's client-executed terminals and the extension of docs/PROTOCOL.md (marker, offsets, acknowledgements).
//
//	h := host.New(host.Options{Token: token})
//	defer h.Close()
//	http.Serve(listener, h)
//
// It keeps no files and starts no processes of its own (a Runner does). Sessions (Options.Sessions) are as much as the tool calls of agents
// need: it has no model.
//
// # How data flows
//
// The owner of a terminal dispatches output. It is checked, placed at its offset and appended, still as the escaped JSON string it came in,
// to the terminal's recorded content, and once, as a whole encoded envelope, to the log of its channel. A subscription is a cursor into
// that log. Each connection has one writer, which takes the next envelope when its socket has taken the last one: always that with the
// smallest serverSeq among its subscriptions. So there are no queues of data per observer: a slow one leaves its cursors behind and costs
// nothing, and one whose cursor has fallen off the log is brought back to a true state, which it can see. Only an observer that takes nothing at all for
// a while is closed.
//
// The catalogue of terminals is state, not a log: a connection that is due a root/terminalsChanged is sent the newest.
package host
