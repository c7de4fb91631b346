package devserver

import "sync"

// looks shares looks at the system among those who need one at the same time: on macOS
// each takes some hundred milliseconds, and a page may need sixty connections.
type looks struct {
	mu   sync.Mutex
	next *look // has not begun, nil if nobody waits for it
	last *look // the newest that was promised
}

type look struct {
	done  chan struct{} // closed when there are hosts or an error
	hosts []string
	err   error
}

// find returns what a look finds that begins after the call.
func (l *looks) find(at func() ([]string, error)) ([]string, error) {
	l.mu.Lock()
	one, before := l.next, l.last
	mine := one == nil
	if mine {
		one = &look{done: make(chan struct{})}
		l.next, l.last = one, one
	}
	l.mu.Unlock()
	if mine {
		if before != nil {
			<-before.done
		}
		l.mu.Lock()
		l.next = nil // whoever comes now needs a later one
		l.mu.Unlock()
		defer close(one.done)
		one.hosts, one.err = at()
		return one.hosts, one.err
	}
	<-one.done
	return one.hosts, one.err
}
