package agenttools

import (
	"context"
	"errors"
	"io"

	"tether/screen"
)

// followScreen is the screen of a terminal after all the output that it had when i was taken; next is the offset after it.
func followScreen(ctx context.Context, t Terminal, i Info, next *int64) (*screen.Screen, error) {
	s, rd, err := oldScreen(t, i)
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	buf := make([]byte, 64<<10)
	for *next = i.Start; *next < i.End && ctx.Err() == nil; {
		ev, ok, err := rd.TryNext(buf)
		if errors.Is(err, io.EOF) || err == nil && !ok {
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
		s.Advance(ev.Data)
		*next = ev.Off
	}
	return s, ctx.Err()
}

// oldScreen is the screen before the oldest output, and a reader of that.
func oldScreen(t Terminal, i Info) (*screen.Screen, Reader, error) {
	if knows, ok := t.(ScreenTerminal); ok {
		old, rd, err := knows.ReadScreen()
		if err != nil {
			return nil, nil, err
		}
		s := screen.NewState(old.Cols, old.Rows)
		s.Write(old.Replay)
		if !old.Exact {
			s.Doubt()
		}
		return s, rd, nil
	}
	rd, err := t.Read(i.Start)
	s := screen.NewState(i.Cols, i.Rows)
	if i.Start > 0 {
		s.Doubt()
	}
	return s, rd, err
}
