package term

import "sync"

// life is the terminal's life as channels, each of which is closed once, for
// whoever waits. They are made at construction and need no lock. run ends with
// done or with left, never with both, and pumped comes before either.
type life struct {
	killed   chan struct{} // closed by kill: no reader holds any more
	killOnce sync.Once
	pumped   chan struct{} // closed by pump at the end of output
	done     chan struct{} // closed by run after MarkExited

	leaving   chan struct{} // closed by leave
	leaveOnce sync.Once
	left      chan struct{} // closed by run, under mu, when the child runs on out of the pool's hands
}

func newLife() life {
	return life{
		killed: make(chan struct{}), pumped: make(chan struct{}), done: make(chan struct{}),
		leaving: make(chan struct{}), left: make(chan struct{}),
	}
}

func (l *life) kill() { l.killOnce.Do(func() { close(l.killed) }) }

func (l *life) leave() { l.leaveOnce.Do(func() { close(l.leaving) }) }

func (l *life) isKilled() bool { return isClosed(l.killed) }

func (l *life) isLeaving() bool { return isClosed(l.leaving) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
