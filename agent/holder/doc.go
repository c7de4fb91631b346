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
// The bytes on the socket are those of wire.go and start.go and are frozen: a daemon
// works with holders that were started by an older or newer program.
// testdata/v1.transcript is a recording that tests replay against both sides.
//
// The daemon sends its hello, then the holder its own: the versions that they know and a
// set of feature bits. Both speak the newest version that both know, and use features
// that both have. Then the daemon proves that it has the key (proof), and the holder does
// (proven, or refused), within 5 s. A proof is the HMAC-SHA256 under the key of four
// parts, each behind its length in 4 bytes: "tether daemon" or "tether holder", the id,
// the daemon's nonce, the holder's nonce. On Linux and macOS proven carries a
// non-blocking descriptor of the pty (SCM_RIGHTS): the daemon writes as much input there
// as there is room for, and sends the rest as input. It closes it with the connection or
// the exit.
//
// Then frames follow: kind u8, length u32, and that many bytes: at most 65,792, of
// screens 1,048,832. Unknown kinds with bit 7 are skipped; other unknown kinds and
// everything out of bounds end the connection. Fixed-form frames may grow at their end.
//
// After the proofs the holder sends state, meta, the notes by ascending offset, the
// screens, exit if there was one, and ready. Output is sent at once while at most 1 KiB
// is under way, otherwise when 64 KiB have gathered or the daemon has taken the bytes
// under way. After more than 1 KiB without a pause of 2 ms, less than 64 KiB waits for
// that pause.
//
//   - until (lag): while a reader is behind by a quarter of the daemon's log, the daemon
//     says how far the child may print, unless somebody types there. The child waits at
//     that offset for 200 ms of any two seconds; then not again until the offset is half
//     a log ahead.
//   - drop: when the past of a terminal is forgotten, the holder drops the bytes that the
//     daemon has read, with their notes and screens.
//   - feed: an accepted piece of standard input is written even if its daemon is gone, so
//     the next daemon, which asks for the count, continues at the right byte. Without a
//     daemon that writes, the input ends after 20 s.
//   - rests (Linux): after 16 KiB without a pause of 2 ms, and within 250 ms of input to
//     another terminal, taken asks the holder not to read the pty for up to 5 ms. It then
//     reads for two thirds of that time before it rests again.
//
// # What the daemon stores
//
//   - Meta, JSON of at most 60 KiB (term's record): everything about a terminal that does
//     not follow from its output. The daemon writes it before a host learns of a URI, and
//     before lend, unlend and promote return. The next daemon ends a terminal without
//     meta, whose start was not finished. With an unknown version, only the person sees
//     the terminal.
//   - Checkpoints, JSON, at raw offsets where nothing is undecided in the scanner,
//     sixteen while the log fills once. The next daemon scans the log from its start or
//     from the oldest checkpoint in it, so offsets, marks and command numbers stay the
//     same. If the log contains none, the holder keeps the newest one, and readers learn
//     of the missing output as a gap, whose length in text is an upper bound.
//   - Screens, JSON, at checkpoints once output was dropped: the size (cols, rows), and
//     bytes that draw the screen (replay); judged says that the view for hosts is known,
//     outward is that view where it differs.
//   - Needed output (keep): the offset of the slowest reader that may hold the child, or
//     of the newest screen. After the daemon was killed, readers that are expected back
//     hold the child as before: hosts of a terminal that waits for slow readers for the
//     stall time, all others for 3 s.
package holder
