// Package channel has what is on its way from a host to its clients: envelopes in the
// order of their serverSeq, the newest ones of each channel, who subscribes to it, and
// how its source is paced. It does not know what a channel is about: terminals, sessions,
// rights and text belong to the host.
//
// All channels of a host share one [Order], and one lock guards them, because serverSeq
// orders the envelopes of all channels. It is the owner's lock: every function here must
// be called with it, except [Wakes.Deliver], which takes it itself. Nothing here blocks,
// and only [Receiver] is called back.
//
//	source: Add, Ack → Channel (log) → Subscription → Outbox: Next → the connection's writer
package channel
