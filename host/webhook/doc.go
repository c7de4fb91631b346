// Package webhook delivers events to receivers that a client of the host's has named, as MCP's events extension (SEP-3415) has it: signed
// (Standard Webhooks), in order, one at a time, again after a failure, and to no address that only this machine or its network reaches.
//
//	h, err := webhook.New(webhook.Options{Open: open, File: path})
//	go h.Run(ctx)
//	answer, err := h.Subscribe(ctx, principal, request)
//
// A [Hub] pulls from one [Source] for each subscription and asks for the next event when the last one was taken or given up. So a receiver
// that hangs costs one goroutine and no memory that grows; a source that has moved on meanwhile says that there is a gap.
//
// A receiver proves first that it wants events, by the answer to a signed challenge. Subscriptions outlive the host in a file, with their
// secrets.
package webhook
