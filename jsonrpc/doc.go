// Package jsonrpc speaks JSON-RPC 2.0 in both directions over a channel of
// whole messages.
//
// A [Peer] owns a [Channel] and two goroutines: the one that calls [Peer.Run]
// reads and calls the [Handler] in order of arrival, the other is the only one
// that writes. Messages to be sent wait in two queues bounded by bytes: the
// control queue (calls, replies, [Peer.Notify]) is always served before the
// bulk queue ([Peer.SendRaw]), so an answer never waits behind a megabyte of
// terminal output. A message is split by spans, not decoded; what it carries
// is decoded by whoever needs it.
//
//	p := jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: h})
//	go p.Run(ctx)
//	err := p.Call(ctx, "ping", params, &result)
//
// What goes wrong is answered as the specification says and costs nothing but
// the message: text that is not JSON gets -32700, a batch or something that is
// no request gets -32600, both with a null id, and reading goes on. Only the
// channel itself ends a peer: then every call that waits fails with
// [ErrClosed] and every blocked sender returns.
//
// Two rules are worth knowing before using it. Control may overtake bulk: what
// must stay in order has to go the same way. And the handler runs on the read
// goroutine, so it answers at once or hands the [Request] to somebody else; it
// must never wait for a [Peer.Call] of its own on the same peer.
//
// Not here: batches, cancellation (AHP has neither), and the meaning of
// methods. The WebSocket channel is package wsconn.
package jsonrpc
