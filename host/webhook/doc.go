// Package webhook delivers events to receivers that a client of the host has named, by
// MCP's events extension (SEP-3415). Messages are signed (Standard Webhooks), sent in
// order, one at a time, and again after a failure. They are not sent to addresses that
// only this machine or its network reaches.
//
//	h, err := webhook.New(webhook.Options{Open: open, File: path})
//	go h.Run(ctx)
//	answer, err := h.Subscribe(ctx, principal, request)
//
// A [Hub] pulls from one [Source] for each subscription. It asks for the next event when
// the last one was taken, or all attempts have failed. So a receiver that hangs costs one
// goroutine and a bounded amount of memory. A source that has dropped events meanwhile
// reports a gap.
//
// A receiver must first prove that it wants events, by its answer to a signed challenge.
// Subscriptions and their secrets are stored in a file, so that they outlive the host.
package webhook
