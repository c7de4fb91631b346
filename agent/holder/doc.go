// Package holder keeps terminals alive without the daemon: one small process per terminal
// owns the pty and a bounded log of its output, so that the daemon may be killed or
// upgraded and then continue where it was.
//
// The holder is the daemon's own program, started with a hidden verb, see [Main]. The
// daemon starts one with [Spawn], finds running ones with [List] and [Dial], and has a
// [Client] for each, which is a term.PTY with offsets:
//
//	c, err := holder.Spawn(ctx, o, spec)        // or holder.Dial(ctx, dir, id)
//	err = c.StreamFrom(c.Base())
//	for { n, err := c.Read(buf) … }             // io.EOF after the last byte
//	exit := c.Wait()
//	err = c.Forget(ctx)                         // the exit was recorded
//
// [Client.TryWrite] types into the pty itself, whose descriptor the holder has passed;
// all else goes through the holder.
//
// It does not interpret the output and knows no hosts and no rights, except which daemon
// may connect: see Options.Key and guard.
//
// # Kept output
//
// The pty is always drained into the log. Bytes that the connected daemon has not taken
// are not dropped: when the log is full of them the child waits, for Spec.Stall while a
// daemon takes nothing, for Spec.AwayHold while none is connected. Then the oldest are
// dropped, and the reader gets their number ([GapError]). Bytes that were taken stay as
// history for the next daemon as far as the log's bound allows, a quarter of it in any
// case: bytes that a daemon had just read when it was killed are still in the log.
//
// One daemon is connected at a time; a newer one replaces the older, which is told. A
// hang-up, as at a logout, does not end a holder; SIGTERM ends it with its child.
//
// # Framing
//
// The bytes on the socket are those of wire.go and are frozen: a daemon works with
// holders that were started by an older or newer program. Both sides begin with a hello:
// the versions that they know and a set of feature bits. Then frames follow: kind u8,
// length u32, and that many bytes. Unknown kinds with bit 7 are skipped, others end the
// connection, as does any length beyond its bound. Fixed-form frames may grow at their
// end.
package holder
