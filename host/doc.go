// Package host is a reference agent host: the server side of the Agent Host Protocol for
// its root, terminal, session and chat channels, with the proposal's client-executed
// terminals and the extension of docs/PROTOCOL.md (marker, offsets, acknowledgements).
//
//	h := host.New(host.Options{Token: token})
//	defer h.Close()
//	http.Serve(listener, h)
//
// It keeps no files and starts no processes of its own (a Runner does). Sessions
// (Options.Sessions) exist only as far as agents' tool calls need them: the host has no
// model.
//
// # How data flows
//
// The owner of a terminal dispatches output. The host checks it and places it at its
// offset. It appends the text, still as the escaped JSON string in which it arrived, to
// the terminal's output (package output), and a whole encoded envelope to the log of the
// terminal's channel (package channel). A subscription is a cursor into that log. Each
// connection has one writer. When the socket has taken the last envelope, the writer
// takes the next one: that with the smallest serverSeq among its subscriptions. So there
// are no queues of data per observer: the cursors of a slow observer fall behind, which
// costs nothing. An observer whose cursor was dropped from the log gets a correct
// present state, and sees that it has missed something. Only an observer that reads
// nothing at all for a while is disconnected.
//
// The catalogue of terminals is state, not a log: a connection that must be sent a
// root/terminalsChanged gets the newest one.
package host
