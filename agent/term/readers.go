package term

// readers are those for whom output is kept: the readers, and those who are
// expected back and hold the child meanwhile as a reader does. Guarded by the
// terminal's mutex, but for room.
type readers struct {
	open    map[*Reader]struct{}
	awaited map[string]int64 // where those who are expected back were, as raw offsets
	room    chan struct{}    // 1 slot, made at construction; one who holds the child moved on, or something was typed
	budget  lagBudget        // of the readers that may slow the child only a little
}

// await has who was at raw offset pos hold the child until it is back under
// that name, or the stall time has passed.
func (a *readers) await(who string, pos int64) {
	if a.awaited == nil {
		a.awaited = map[string]int64{}
	}
	a.awaited[who] = pos
}

// arrived ends the wait for who, and reports whether there was one.
func (a *readers) arrived(who string) bool {
	_, ok := a.awaited[who]
	if ok {
		delete(a.awaited, who)
		a.makeRoom()
	}
	return ok
}

// needed is the raw offset from where on those who may hold the child do not
// have the output, or keepNothing.
func (a *readers) needed() int64 {
	least := int64(keepNothing)
	for r := range a.open {
		if r.holds && !r.stalled {
			least = min(least, r.pos)
		}
	}
	for _, pos := range a.awaited {
		least = min(least, pos)
	}
	return least
}

// makeRoom tells a waiting pump that a reader moved. It needs no lock.
func (a *readers) makeRoom() {
	select {
	case a.room <- struct{}{}:
	default:
	}
}

// Names of those who are awaited: hosts, and people, who have none.
func awaitedHost(name string) string { return "host " + name }

func awaitedPerson(n int) string { return "person " + string(rune('0'+n)) }

// maxPeople bounds the people who are expected back.
const maxPeople = 9
