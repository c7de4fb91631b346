package policy

import (
	"context"

	"tether/agent/command"
)

// Over is over.
var Over = over

// Admit is Spawn without a terminal: it counts the starts in a minute, not running
// terminals.
func (e *Engine) Admit(ctx context.Context, r Request) (Decision, error) {
	d, p, _, err := e.admit(ctx, r, false)
	if err == nil {
		e.limits.leave(p)
	}
	return d, err
}

// leave ends the use of a place; the start stays counted.
func (l *limits) leave(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.usage[p.account]; u != nil {
		delete(u.places, p)
	}
}

// ListLines are the numbers of the lines of the built-in lists that find the command.
func ListLines(c command.Command) []int {
	var met []int
	n := 0
	for _, group := range ownLists {
		for _, p := range group.patterns {
			if p.fits(c, false) == alike {
				met = append(met, n)
			}
			n++
		}
	}
	return met
}

// AllListLines are the first words of those lines.
func AllListLines() []string {
	var all []string
	for _, group := range ownLists {
		for _, p := range group.patterns {
			all = append(all, p.argv[0][0])
		}
	}
	return all
}
