package agenttools

import (
	"context"

	"tether/screen"
)

// Showing returns the screen of a terminal after all output that it has now, and the
// number of masked places in that output. It blocks while it reads, until ctx ends.
func Showing(ctx context.Context, t Terminal) (s *screen.Screen, masked int, err error) {
	var r ReadAnswer
	s, err = followScreen(ctx, t, t.Info(), &r)
	return s, r.Masked, err
}

// followScreen returns the screen of a terminal after all output that it had when i was
// taken. It stores in r the offset after that output and the number of masked places.
func followScreen(ctx context.Context, t Terminal, i Info, r *ReadAnswer) (*screen.Screen, error) {
	s, gap, rd, err := oldScreen(t, i, &r.Masked)
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	r.Cursor = i.Start
	for ev, err := range Available(rd) {
		if r.Cursor >= i.End || ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case ev.Lost > 0:
			s.Doubt()
		case ev.Resized != nil:
			s.Resize(ev.Resized[0], ev.Resized[1])
		}
		if gap > 0 && ev.Off >= gap {
			n := max(int64(len(ev.Data))-(ev.Off-gap), 0)
			s.Advance(ev.Data[:n])
			s.Doubt()
			ev.Data, gap = ev.Data[n:], 0
		}
		s.Advance(ev.Data)
		r.Cursor = ev.Off
		r.Masked += ev.Masked
	}
	return s, ctx.Err()
}

// oldScreen returns the screen before the oldest kept output, a reader of the kept
// output, and the newest offset in it at which output is missing (0 if none is).
func oldScreen(t Terminal, i Info, masked *int) (s *screen.Screen, gap int64, rd Reader, err error) {
	if knows, ok := t.(ScreenTerminal); ok {
		old, rd, err := knows.ReadScreen()
		if err != nil {
			return nil, 0, nil, err
		}
		s = screen.NewState(old.Cols, old.Rows)
		s.Write(old.Replay)
		*masked = old.Masked
		if !old.Exact {
			s.Doubt()
		}
		return s, old.Gap, rd, nil
	}
	rd, err = t.Read(i.Start)
	s = screen.NewState(i.Cols, i.Rows)
	if i.Start > 0 {
		s.Doubt()
	}
	return s, 0, rd, err
}
