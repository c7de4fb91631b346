package term

import "math"

// What the daemon has taken from a holder, but those for whom it is do not have
// yet, must be in the holder's log when the daemon is killed. So the holder is
// told from where on that is, in steps. And after such an end, or when a link
// is lost, those who are expected back still hold the child, as they would have.

// HolderLogBytes is the bound of a holder's log for terminals of which
// logBytes are kept, see Options. It is at least large enough for what is on
// its way to a host.
func HolderLogBytes(logBytes int) int { return max(logBytes, minHolderLog) }

const (
	minHolderLog = 1 << 20 // bytes

	// Parts of a holder's log. What a reader has been given may be on its way
	// still: to a host at most uplink's window, to a person what sockets hold.
	onItsWay = 8
	// A checkpoint must lie before it; see notesPerLog.
	keepStep = 16
)

// keepNothing is what HolderPTY.Keep is told when nothing is needed.
const keepNothing = math.MaxInt64

// heldForLocked is the raw offset from where on those who may hold the child do
// not have the output, or keepNothing: once it is killed nobody may hold it.
func (t *Terminal) heldForLocked() int64 {
	if t.life.isKilled() {
		return keepNothing
	}
	return t.readers.needed()
}

// neededLocked is the raw offset from where on the holder is to keep output, or
// keepNothing.
func (t *Terminal) neededLocked() int64 {
	least := t.heldForLocked()
	if least == keepNothing {
		return least
	}
	log := HolderLogBytes(t.pool.opts.LogBytes)
	return max(least-int64(log/onItsWay)-int64(log/notesPerLog), 0)
}

// needLocked tells the holder from where on output is needed, if that has
// changed by much.
func (t *Terminal) needLocked() {
	if t.holder == nil || t.adoption.underWay() {
		return
	}
	now, told := t.neededLocked(), t.keeper.keep
	step := int64(HolderLogBytes(t.pool.opts.LogBytes) / keepStep)
	if now == told || now != keepNothing && told != keepNothing && told >= 0 && now >= told && now-told < step {
		return
	}
	t.keeper.keep, t.keeper.keepStale = now, true
	t.saveLocked()
}
