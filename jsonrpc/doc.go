// Package jsonrpc speaks JSON-RPC 2.0 in both directions over a channel of whole
// messages.
//
// A [Peer] owns a [Channel] and two goroutines: the one that calls [Peer.Run] reads and
// calls the [Handler] in order of arrival, the other is the only one that writes.
// Messages to be sent wait in two queues bounded by bytes: the control queue (calls,
// replies, [Peer.Notify]) is always served before the bulk queue ([Peer.SendRaw]), so an
// answer never waits behind a megabyte of terminal output. A message is split into spans,
// not decoded; its user decodes the parts that it needs.
//
//	p := jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: h})
//	go p.Run(ctx)
//	err := p.Call(ctx, "ping", params, &result)
//
// A bad message gets the answer that the specification demands, and the connection
// continues: text that is not JSON gets -32700, a batch or anything else that is not a
// request gets -32600, both with a null id. Only the channel itself ends a peer: then
// every call that waits fails with [ErrClosed] and every blocked sender returns.
//
// A channel with binary messages may carry a stream of bytes beside the messages, see
// [Peer.Stream]: it has the lowest priority.
//
// Two rules are worth knowing before using it. Control may overtake bulk: messages that
// must stay in order have to use the same queue. And the handler runs on the read
// goroutine, so it answers at once or hands the [Request] to another goroutine; it must
// never wait for a [Peer.Call] of its own on the same peer.
//
// Not here: batches, cancellation (AHP has neither), and the meaning of methods. The
// WebSocket channel is package wsconn.
package jsonrpc
