package holder

import "errors"

// The framing of version 1 is frozen; the package comment has the rules between frames.
// All numbers are big-endian. Offsets count the bytes that the child has written.
//
// A hello is magic, the length of the rest u16 (44 to maxHello), the oldest and the
// newest version spoken u16 each, features u64, a nonce that is new for each connection
// and side, and fields of later versions, which are skipped.

const (
	magic      = "TETHER-H"
	minVersion = 1
	maxVersion = 1
	// features is the set of abilities beyond version 1 that this program has. A side
	// uses one only when both have it.
	features = featureSignal | featureKeep | featureUntil | featureScreen | featureReading | featureFeed | featureDrop

	featureSignal  uint64 = 1 << 0 // kindSignal
	featureKeep    uint64 = 1 << 1 // kindKeep
	featureUntil   uint64 = 1 << 2 // kindUntil
	featureScreen  uint64 = 1 << 3 // kindScreen, kindShown
	featureReading uint64 = 1 << 4 // kindReading
	featureFeed    uint64 = 1 << 5 // kindFeed
	featureDrop    uint64 = 1 << 6 // kindDrop

	helloHead = len(magic) + 2         // bytes before the part that may grow
	helloBody = 2 + 2 + 8 + nonceBytes // bytes of that part in version 1
	maxHello  = 1024                   // bytes of that part in any version

	nonceBytes = 32
	proofBytes = 32 // of HMAC-SHA256

	// KeyBytes is the length of Options.Key.
	KeyBytes = 32
)

// kind is the first byte of a frame. A receiver that does not know a kind with bit 7 may
// skip it.
type kind uint8

const optional kind = 0x80

// Frames of the daemon. A request is numbered from 1; no two in progress have one number.
//
//   - kindStream, once per connection: send output from there on, not beyond the end. The
//     window, 64 KiB to 16 MiB, bounds the bytes under way.
//   - kindTaken: all before it was taken; at the latest 20 ms after all that came was
//     read.
//   - kindInput: one at a time, the next after the reply.
//   - kindKill ends the child's tree, at most four at a time; kindCancel ends its grace.
//   - kindForget: the exit was recorded. The holder removes the socket, replies and ends.
//   - kindKeep: from there on bytes are needed whether taken or not; 2^63-1: none. It
//     outlives the connection, unless the next daemon lacks the feature.
//   - kindUntil: beyond it the child waits a little; 2^63-1: never. It ends with the
//     connection.
//   - kindScreen: dropped if its offset is not in the log. Screens are kept like notes,
//     but none before the base.
//   - kindReading asks who waits for the keyboard. The text of the reply is waits u8 (0
//     not known, 1 nobody, 2 somebody), flags u8 (1 alone, 2 relays, 4 for a limited
//     time), pid u32.
//   - kindFeed: flag 1 says that nothing follows. Bytes before the accepted ones are
//     skipped. The reply comes when the piece is in the pipe, and at once without bytes
//     and flag; its text is the offset of the next byte to accept.
//   - kindDrop: the holder drops what was taken before the offset, as if its log were full.
const (
	kindStream     kind = 0x01 // offset u64, window u32
	kindTaken      kind = 0x02 // offset u64; may be followed by rest in microseconds u32
	kindInput      kind = 0x03 // request u32, bytes
	kindResize     kind = 0x04 // request u32, columns u16, rows u16
	kindKill       kind = 0x05 // request u32, grace in milliseconds u32
	kindCancel     kind = 0x06 // request u32
	kindSetMeta    kind = 0x07 // request u32, bytes
	kindCheckpoint kind = 0x08 // request u32, offset u64, bytes
	kindForget     kind = 0x09 // request u32
	kindSignal     kind = 0x0a // request u32, name; with featureSignal
	kindKeep       kind = 0x0b // offset u64; with featureKeep
	kindProof      kind = 0x0c // HMAC; once, after the hellos
	kindUntil      kind = 0x0d // offset u64; with featureUntil
	kindScreen     kind = 0x0e // offset u64, bytes; with featureScreen
	kindReading    kind = 0x0f // request u32; with featureReading
	kindFeed       kind = 0x10 // request u32, offset u64, flags u8, bytes; with featureFeed
	kindDrop       kind = 0x11 // request u32, offset u64; with featureDrop
	kindSpawn      kind = 0x21 // fields; only on the pipe of a start
)

// Frames of the holder. A note is a checkpoint; at most one, the newest, is before the
// base. Where the offset of data is beyond the expected one, the bytes in between are
// lost. Data before its end may follow an exit.
const (
	kindState    kind = 0x41 // base u64, end u64, taken u64, started u64 (Unix nanoseconds), pid u32, columns u16, rows u16, limit u64
	kindMeta     kind = 0x42 // bytes
	kindNote     kind = 0x43 // offset u64, bytes
	kindReady    kind = 0x44 // nothing
	kindData     kind = 0x45 // offset u64, bytes
	kindExit     kind = 0x46 // end u64, at u64 (Unix nanoseconds), code u32 (all ones: not known), name of the signal
	kindReply    kind = 0x47 // request u32, status u8, text
	kindReplaced kind = 0x48 // nothing
	kindProven   kind = 0x49 // HMAC; once, before all others
	kindRefused  kind = 0x4a // text; instead of kindProven
	kindShown    kind = 0x4b // offset u64, bytes: a screen; with featureScreen
	kindStarted  kind = 0x61 // text: limits of the child that could not be set; only on the pipe of a start
	kindFailed   kind = 0x62 // fields; only on the pipe of a start
)

const (
	frameHead = 1 + 4 // kind u8, length of the rest u32
	dataHead  = frameHead + 8

	maxData  = 64 << 10      // bytes of output in one frame
	maxInput = 32 << 10      // bytes of typed or piped input in one frame
	maxBlob  = 64 << 10      // bytes of meta or of a checkpoint
	maxFrame = maxBlob + 256 // bytes after the head of any frame but kindSpawn and screens
	maxText  = 4 << 10       // bytes of an error's text
	maxShown = 1 << 20       // bytes of a screen
	maxSpawn = 9 << 20       // bytes of a spawn message, with pty.MaxStart of arguments and environment
	maxField = 4 << 20       // bytes of one of its fields
)

// Status of a reply.
const (
	statusOK      = 0
	statusError   = 1 // the text is the error
	statusClosed  = 2 // the terminal was closed
	statusRunning = 3 // the child has not ended
	statusNoFeed  = 4 // the child's standard input is its terminal; with featureFeed

	stays = "stays" // text of the reply to forget: the holder stays for remaining processes
)

var (
	errFrame = errors.New("holder: malformed frame")
	errSize  = errors.New("holder: frame too large")
)
