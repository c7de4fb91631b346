package uplink

import (
	"context"

	"tether/agent/term"
)

// noteAnnounced notes that the host has the terminal under its URI.
func (l *Link) noteAnnounced(le *lending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	le.shown, le.there = true, true
	close(l.announced)
	l.announced = make(chan struct{})
}

// Announced returns the URI under which the host has the terminal, and its title
// there. It waits until the host has it; false if ctx ends before.
func (l *Link) Announced(ctx context.Context, id term.ID) (uri, title string, ok bool) {
	for {
		l.mu.Lock()
		le, next := l.lendings[id], l.announced
		if le != nil && le.shown {
			uri = le.uri
		}
		l.mu.Unlock()
		if uri != "" {
			return uri, le.h.Outward().Title(le.h.Info().Title), true
		}
		select {
		case <-next:
		case <-ctx.Done():
			return "", "", false
		}
	}
}
