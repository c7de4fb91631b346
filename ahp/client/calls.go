package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"tether/ahp"
	"tether/internal/jsonspan"
)

// Ping sends a ping and waits for the answer. It may overtake bulk messages that were
// sent before.
func (c *Conn) Ping(ctx context.Context) error {
	return c.peer.Call(ctx, ahp.MethodPing, ahp.PingParams{Channel: ahp.RootURI}, nil)
}

// Barrier is a [Conn.Ping] that stays behind all earlier dispatches: when it returns
// without an error, the host has read them.
func (c *Conn) Barrier(ctx context.Context) error {
	return c.peer.CallBulk(ctx, ahp.MethodPing, ahp.PingParams{Channel: ahp.RootURI}, nil)
}

// Subscribe asks for a channel's messages. They may begin to arrive before it returns.
// Messages that the snapshot does not contain have a ServerSeq greater than its FromSeq.
func (c *Conn) Subscribe(ctx context.Context, channel string) (ahp.SubscribeResult, error) {
	var r ahp.SubscribeResult
	var raw json.RawMessage
	if err := c.peer.Call(ctx, ahp.MethodSubscribe, ahp.SubscribeParams{Channel: channel}, &raw); err != nil {
		return r, err
	}
	decode := jsonspan.Unmarshal
	if strings.HasPrefix(channel, ahp.TerminalScheme) { // it has output: see ahp.DecodeAction
		decode = json.Unmarshal
	}
	if err := decode(raw, &r); err != nil {
		return r, fmt.Errorf("decode the snapshot of %s: %w", channel, err)
	}
	return r, nil
}

// Unsubscribe ends a subscription. Messages on their way still arrive.
func (c *Conn) Unsubscribe(ctx context.Context, channel string) error {
	return c.peer.Notify(ctx, ahp.MethodUnsubscribe, ahp.UnsubscribeParams{Channel: channel})
}

// CreateTerminal asks for a terminal. Hosts that start a shell may take more than ten
// seconds.
func (c *Conn) CreateTerminal(ctx context.Context, p ahp.CreateTerminalParams) error {
	return c.peer.Call(ctx, ahp.MethodCreateTerminal, p, nil)
}

// DisposeTerminal asks for the end of a terminal.
func (c *Conn) DisposeTerminal(ctx context.Context, channel string) error {
	return c.peer.Call(ctx, ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: channel}, nil)
}

// ListSessions asks for a page of sessions.
func (c *Conn) ListSessions(ctx context.Context, p ahp.ListSessionsParams) (ahp.ListSessionsResult, error) {
	p.Channel = ahp.RootURI
	var r ahp.ListSessionsResult
	err := c.peer.Call(ctx, ahp.MethodListSessions, p, &r)
	return r, err
}

// Dispatch queues an action and returns its clientSeq. The host answers with an envelope
// that has this clientSeq, but only if the client is subscribed to the channel. Actions
// keep their order. Dispatch blocks while the queue is full.
func (c *Conn) Dispatch(ctx context.Context, channel string, a ahp.Action) (clientSeq int64, err error) {
	clientSeq = c.NextSeq()
	return clientSeq, c.peer.SendRaw(ctx, ahp.AppendDispatch(nil, channel, clientSeq, a, c.Version()))
}

// NextSeq returns a new clientSeq, for a dispatch that the caller encodes itself
// (ahp.AppendOutput).
func (c *Conn) NextSeq() int64 { return c.seq.Add(1) }
