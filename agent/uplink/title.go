package uplink

import (
	"context"
	"time"

	"tether/ahp"
)

// titlePause is the least time between two titles of a terminal that a host is
// told: a program that counts in its title, as some do thousands of times in a
// second, costs host and observers four small actions. The last one always
// arrives, and before the exit.
const titlePause = 250 * time.Millisecond

// tellTitle tells the host the terminal's title as it is now, if it has changed
// and it is time or, if last, without waiting.
func (p *publisher) tellTitle(ctx context.Context, last bool) error {
	if !p.retitled || !last && p.titleRest() > 0 {
		return nil
	}
	p.retitled = false
	title := p.info().Title
	if title == p.title {
		return nil
	}
	p.title, p.titled = title, time.Now()
	return p.dispatch(ctx, ahp.TerminalTitleChanged{Title: title})
}

// titleRest is how long the next title has to wait.
func (p *publisher) titleRest() time.Duration { return titlePause - time.Since(p.titled) }
