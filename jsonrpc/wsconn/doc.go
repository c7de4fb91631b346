// Package wsconn carries JSON-RPC messages over WebSocket: one message is one
// text frame, in both directions, as AHP wants it.
//
// A [Conn] is a jsonrpc.Channel made by [Dial] or [Accept]. The protocol itself
// is github.com/coder/websocket; this package adds what a long-lived link
// needs around it: limits that are always set, a time limit for every write,
// errors with the status or close code that a caller acts on, no redirects, no
// secrets from the URL in errors, and frames that leave in one write.
//
//	c, err := wsconn.Dial(ctx, "wss://host/?tkn=…", wsconn.Options{})
//	peer := jsonrpc.NewPeer(c, jsonrpc.Options{})
//	err = peer.Run(ctx)
//
// Cancelling the context of a Send or Recv that is under way closes the
// connection: half a frame cannot be taken back. The same holds for a write
// that takes longer than [Options.WriteTimeout].
//
// A connection whose other end has vanished without a word is not noticed by
// reading. Call [Conn.Ping] from time to time and close when it fails.
//
// Not here: who may connect. Before [Accept] the caller checks the Host and
// Origin headers and the token; [Options] says how the two checks of Origin
// add up.
package wsconn
