package term

// ownership is whose the terminal is, and how many people are at it. Guarded by
// the terminal's mutex.
type ownership struct {
	owner    Actor
	visible  bool
	promoted bool  // owner was an agent before
	starter  Actor // that agent; nobody if that is not known
	attached int
}

// promote makes it the person's for good.
func (n *ownership) promote() { n.starter, n.owner, n.visible, n.promoted = n.owner, User, true, true }

// attach counts a person in (+1) or out (-1).
func (t *Terminal) attach(by int) {
	t.mu.Lock()
	t.ownership.attached += by
	for i := 0; i < maxPeople && by > 0; i++ {
		if t.readers.arrived(awaitedPerson(i)) {
			break
		}
	}
	if t.holder != nil && t.ending.exit == nil {
		t.staleLocked()
	}
	t.needLocked()
	t.tellLocked()
	t.mu.Unlock()
}
