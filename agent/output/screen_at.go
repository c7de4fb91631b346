package output

import "tether/screen"

// ScreenAt is the screen at a raw offset of what a Reader returns. It is not safe for
// concurrent use.
type ScreenAt struct {
	Is     *screen.Screen
	At     int64
	Reader *Reader                  // of ViewScreen, with Linear
	Pass   func(data []byte) []byte // nil, or changes the output before the screen gets it

	rest []byte // output behind At, which was read
}

// OldestScreen returns the screen at the oldest offset at which it is known. all is a
// reader of ViewScreen, with Linear, which the screen closes, also on error.
func OldestScreen(all *Reader) (*ScreenAt, error) {
	old, err := all.Oldest()
	if err != nil {
		all.Close()
		return nil, err
	}
	is := screen.NewState(int(old.Size.Cols), int(old.Size.Rows))
	is.Write(old.Replay)
	return &ScreenAt{Is: is, Reader: all, At: old.Raw}, nil
}

// Close closes the reader.
func (s *ScreenAt) Close() { s.Reader.Close() }

// Until advances the screen to a raw offset, or to the last output before it that can be
// read.
func (s *ScreenAt) Until(to int64) {
	buf := make([]byte, 64<<10)
	for s.At < to {
		if len(s.rest) == 0 {
			ev, ok, err := s.Reader.TryNext(buf)
			if err != nil || !ok {
				return // the reader has lost its place, or nothing more can be read
			}
			if m := ev.Mark; m != nil && m.Kind == MarkResized {
				s.Is.Resize(int(m.Size.Cols), int(m.Size.Rows))
			}
			s.rest, s.At = ev.Data, ev.Raw-int64(len(ev.Data))
			continue
		}
		n := min(int64(len(s.rest)), to-s.At)
		data := s.rest[:n]
		if s.Pass != nil {
			data = s.Pass(data)
		}
		s.Is.Advance(data)
		s.rest, s.At = s.rest[n:], s.At+n
	}
}
