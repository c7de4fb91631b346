// Package wsconn carries JSON-RPC messages over WebSocket: one message is one text frame,
// in both directions, as AHP requires. Binary frames are for the stream of package
// jsonrpc.
//
// A [Conn] is a jsonrpc.Channel made by [Dial] or [Accept]. The protocol itself is
// github.com/coder/websocket; this package adds the needs of a long-lived link: limits
// that are always set, a time limit for every write, errors with the status or close code
// that a caller acts on, no redirects, no secrets from the URL in errors, and frames that
// leave in one write.
//
//	c, err := wsconn.Dial(ctx, "wss://host/?tkn=…", wsconn.Options{})
//	peer := jsonrpc.NewPeer(c, jsonrpc.Options{})
//	err = peer.Run(ctx)
//
// Cancelling the context of a running Send or Recv closes the connection, because half a
// frame cannot be taken back. So does a write that takes longer than
// [Options.WriteTimeout].
//
// Reading does not notice that the other end vanished without closing. Call [Conn.Ping]
// from time to time and close when it fails.
//
// Not here: access control. Before [Accept] the caller checks the Host and Origin headers
// and the token; [Options] explains how the two checks of Origin combine.
package wsconn
