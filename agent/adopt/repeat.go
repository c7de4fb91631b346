package adopt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"tether/platform/proc"
)

// teller is a program that tells what its panes show, and not the bytes they print.
type teller interface {
	// panes lists the panes.
	panes(ctx context.Context) ([]Pane, error)
	// text returns the rows of a pane's screen, with past also those above it, and the
	// colours that the program tells. What a Pane has too is not set.
	text(ctx context.Context, p Pane, past bool) (picture, error)
}

// How often a pane is looked at: soon after it has changed, and more and more rarely
// while it does not.
const (
	quickest = 500 * time.Millisecond
	slowest  = 5 * time.Second
	lookTime = 3 * time.Second // until a program that does not answer is asked again
)

// errEnded says that a pane or its server is gone.
var errEnded = errors.New("the pane has ended")

// repeat draws a pane's pictures on w until the pane ends: then it returns nil. It
// returns an error if w fails. While the program does not answer it waits, because what
// is stopped may go on.
func repeat(ctx context.Context, w io.Writer, from teller, p Pane, nonce string) error {
	paint := painter{w: w, nonce: nonce}
	var shown []byte // the text of the last picture
	var checked time.Time
	for wait := quickest; ; {
		next, err := text(ctx, from, p, false)
		if err != nil || !bytes.Equal(next.text, shown) || time.Since(checked) >= slowest {
			var gone error
			if p, gone = present(ctx, from, p); errors.Is(gone, errEnded) {
				return nil
			}
			if err == nil && gone == nil {
				checked = time.Now()
				next.size, next.title, next.dir = p.Size, p.Title, p.Dir
				if paint.changes(next) || !bytes.Equal(next.text, shown) {
					past := func() (picture, error) { return text(ctx, from, p, true) }
					if err := paint.draw(next, past); err != nil {
						return err
					}
					shown, wait = next.text, quickest
				}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
			wait = min(2*wait, slowest)
		}
	}
}

// text asks for the text of a pane.
func text(ctx context.Context, from teller, p Pane, past bool) (picture, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	next, err := from.text(ctx, p, past)
	next.size = p.Size
	return next, err
}

// present returns p as it is now. The error is errEnded if it is gone, also if another
// pane has its number; p is returned as it was if there is another error.
func present(ctx context.Context, from teller, p Pane) (Pane, error) {
	if info, err := proc.Lookup(p.Server.Pid); err != nil || info.ID != p.Server || info.Zombie {
		return p, errEnded
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	all, err := from.panes(ctx)
	if err != nil {
		return p, err
	}
	for _, now := range all {
		if now.Target.Pane == p.Target.Pane && now.Server == p.Server && now.Pid == p.Pid {
			return now, nil
		}
	}
	return p, errEnded
}
