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

// keepNothing is what Held.Keep is told when nothing is needed.
const keepNothing = math.MaxInt64

// neededLocked is the raw offset from where on output is needed, or
// keepNothing. Only readers that may hold the child need anything, and once it
// is killed none may.
func (t *Terminal) neededLocked() int64 {
	least := int64(keepNothing)
	if t.isKilled() {
		return least
	}
	for r := range t.readers {
		if r.holds && !r.stalled {
			least = min(least, r.pos)
		}
	}
	for _, pos := range t.awaited {
		least = min(least, pos)
	}
	if least == keepNothing {
		return least
	}
	log := HolderLogBytes(t.pool.opts.LogBytes)
	return max(least-int64(log/onItsWay)-int64(log/notesPerLog), 0)
}

// needLocked tells the holder from where on output is needed, if that has
// changed by much.
func (t *Terminal) needLocked() {
	if t.held == nil || t.caught != nil {
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

// awaitLocked has who was at raw offset pos hold the child until it is back
// under that name, or the stall time has passed.
func (t *Terminal) awaitLocked(who string, pos int64) {
	if t.awaited == nil {
		t.awaited = map[string]int64{}
	}
	t.awaited[who] = pos
}

// arrivedLocked ends the wait for who.
func (t *Terminal) arrivedLocked(who string) {
	if _, ok := t.awaited[who]; ok {
		delete(t.awaited, who)
		t.makeRoom()
	}
}

// absentLocked reports whether one who is expected back holds the child from n
// more bytes.
func (t *Terminal) absentLocked(n int) bool {
	for _, pos := range t.awaited {
		if t.log.End()+int64(n)-pos > int64(t.log.Limit()) {
			return true
		}
	}
	return false
}

// giveUpLocked ends the wait for those who hold the child from n more bytes.
func (t *Terminal) giveUpLocked(n int) {
	for who, pos := range t.awaited {
		if t.log.End()+int64(n)-pos > int64(t.log.Limit()) {
			delete(t.awaited, who)
		}
	}
	t.needLocked()
}

// Names of those who are awaited: hosts, and people, who have none.
func awaitedHost(name string) string { return "host " + name }

func awaitedPerson(n int) string { return "person " + string(rune('0'+n)) }

// maxPeople bounds the people who are expected back.
const maxPeople = 9
