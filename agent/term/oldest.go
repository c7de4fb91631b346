package term

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"tether/agent/redact"
	"tether/agent/ring"
	"tether/internal/lazyregexp"
	"tether/screen"
)

// advancePart is the fraction of a log's bound that dropped output may take while it
// waits for the screen to process it. The more it processes at once, the cheaper are
// lines that scroll away at once.
const advancePart = 32

// oldest is the screen at the oldest byte of a log, or a little behind it: the result of
// the dropped output. It keeps nothing until output is dropped. Guarded by the terminal's
// mutex.
type oldest struct {
	size   Size           // of the screen before the first output
	pos    int64          // raw offset of the screen with waits behind it
	screen *screen.Screen // nil: blank, of that size
	waits  []byte         // dropped output that the screen has not processed yet, as in ViewScreen
	marks  int64          // number of the first mark that the screen has not processed

	outward outwardScreen

	ahead bool     // see emulateAhead
	stops []int64  // raw offsets at which the screen is to be stored, ascending
	kept  []Screen // stored screens, up to pos and within the log, ascending
}

// begun returns the screen, and makes it if there is none.
func (o *oldest) begun() *screen.Screen {
	if o.screen == nil {
		o.screen = screen.NewState(int(o.size.Cols), int(o.size.Rows))
	}
	return o.screen
}

// flush makes the screen process the waiting output.
func (o *oldest) flush() {
	if len(o.waits) > 0 {
		o.begun().Advance(o.waits)
		o.waits = o.waits[:0]
	}
	o.outward.flush()
}

// lose records that the output before a raw offset is unknown.
func (o *oldest) lose(raw int64) {
	size := o.size
	if o.screen != nil {
		cols, rows := o.screen.Size()
		size = Size{Cols: uint16(cols), Rows: uint16(rows)}
	}
	*o = oldest{size: size, pos: raw, marks: o.marks, ahead: o.ahead, outward: outwardScreen{judge: o.outward.judge}}
	o.begun().Doubt()
}

// giveUp drops the screen if it takes more than so many bytes, because memory is short.
// Screens that are stored for the next daemon have a bound of their own and do not count.
func (o *oldest) giveUp(most int) {
	kept, stops := o.kept, o.stops
	o.kept, o.stops = nil, nil
	if o.cost() > most {
		o.lose(o.pos)
	}
	o.kept, o.stops = kept, stops
}

// resize gives the screen another size.
func (o *oldest) resize(z Size) {
	o.flush()
	o.begun().Resize(int(z.Cols), int(z.Rows))
	if o.outward.screen != nil {
		o.outward.screen.Resize(int(z.Cols), int(z.Rows))
	}
}

// cost is the memory that it takes, in bytes.
func (o *oldest) cost() int {
	n := cap(o.waits) + o.outward.cost()
	for i := range o.kept {
		n += o.kept[i].cost()
	}
	if o.screen == nil {
		return n
	}
	return n + o.screen.Cost()
}

// shown returns the screen, after it has processed the waiting output.
func (o *oldest) shown() Screen {
	o.flush()
	at := o.begun()
	cols, rows := at.Size()
	replay := at.Replay()
	shown := Screen{Raw: o.pos, Size: Size{Cols: uint16(cols), Rows: uint16(rows)}, Replay: replay, Exact: !at.Doubtful() && replay != nil}
	shown.outward, shown.judged = o.outward.shown(&shown)
	return shown
}

// leave processes the output before a raw offset, which the log is about to drop. Output
// that the scanner has not judged yet would be lost; that does not happen, because a log
// is larger than the scanner's undecided part.
func (s *stream) leave(to int64) {
	s.leaveTo(to)
	s.oldest.forget(to)
	s.emulateAhead(to)
}

func (s *stream) leaveTo(to int64) {
	o := &s.oldest
	if to <= o.pos {
		return
	}
	known := min(to, s.decided)
	for o.pos < known {
		limit := known
		i := int(max(s.markAt(o.pos), o.marks) - s.firstMark)
		for ; i < s.marks.len(); i++ {
			m := s.marks.at(i)
			if m.Off >= known || m.Kind == MarkResized && m.Off > o.pos {
				limit = min(limit, m.Off)
				break
			}
			if m.Kind == MarkResized {
				o.resize(m.Size)
			}
		}
		o.marks = s.firstMark + int64(i)
		s.leavePiece(limit)
	}
	if o.pos < to {
		o.lose(to)
	}
}

// leavePiece processes the output up to a raw offset, within which the size does not
// change.
func (s *stream) leavePiece(to int64) {
	o := &s.oldest
	s.leaveOutward(o.pos, to)
	for o.pos < to {
		if cap(o.waits)-len(o.waits) < minReadBuffer {
			if most := s.log.Limit() / advancePart; cap(o.waits) >= most {
				o.flush()
			} else {
				o.waits = append(make([]byte, 0, min(max(2*cap(o.waits), 2<<10), most)), o.waits...)
			}
		}
		n := len(o.waits)
		end, k := s.fill(o.waits[n:cap(o.waits)], ViewScreen, o.pos, to, false)
		if end == o.pos {
			o.lose(to) // impossible: there is room
			return
		}
		o.pos, o.waits = end, o.waits[:n+k]
	}
}

// setLimit changes the bound of the log.
func (s *stream) setLimit(limit int) {
	if low := s.log.End() - int64(ring.New(limit).Limit()); low > s.log.Start() {
		s.leave(low)
	}
	s.log.SetLimit(limit)
	if o := &s.oldest; cap(o.waits) > s.log.Limit()/advancePart {
		o.flush()
		o.waits = nil
	}
}

// Screen is what a terminal shows before a raw offset.
type Screen struct {
	Raw    int64  // the offset
	Size   Size   // before the marks at that offset
	Replay []byte // makes a fresh terminal of that size the same; counts in no offset
	Exact  bool   // everything on it is known
	Masked int    // places that are masked, of ViewOutward

	outward []byte // Replay as hosts see it; the same slice if nothing is masked
	judged  bool   // all of outward was examined
}

// cost is the memory that it takes, in bytes.
func (a *Screen) cost() int {
	if a.isMasked() {
		return len(a.Replay) + len(a.outward)
	}
	return len(a.Replay)
}

// isMasked reports whether hosts see a different screen.
func (a *Screen) isMasked() bool {
	return len(a.outward) > 0 && (len(a.Replay) != len(a.outward) || &a.outward[0] != &a.Replay[0])
}

// Oldest moves the reader to the oldest output that is kept, or to the first offset after
// it where the screen is known, and returns the screen there. That screen and the
// reader's later output together show the same as all output from the start. For
// ViewOutward the screen is masked as the output is; if that is impossible, Replay is
// empty and the screen is not exact.
func (r *Reader) Oldest() (Screen, error) {
	t := r.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.closed {
		return Screen{}, io.ErrClosedPipe
	}
	s := &t.stream
	start := s.log.Start()
	s.leave(start)
	o := &s.oldest
	at := Screen{Raw: start, Size: o.size, Exact: true}
	switch {
	case start == 0 && o.screen == nil && len(o.waits) == 0:
	default:
		at = o.first()
		if r.view == ViewOutward && t.lending.rules != nil {
			s.maskScreen(&at, t.lending.rules)
		}
	}
	r.pos, r.ended = at.Raw, false
	r.off = r.offsetLocked(at.Raw)
	r.mark = s.markAt(at.Raw)
	if r.holds {
		t.needLocked()
		t.readers.makeRoom()
	}
	return at, nil
}

// maskScreen masks a screen for an agent, and counts the masked places. If a part of it
// was printed while nobody looked for secrets, it masks the secrets that are on the
// screen now, and removes text that may be a part of a secret: the rest has scrolled
// away, or is printed later.
func (s *stream) maskScreen(at *Screen, rules *redact.Rules) {
	if at.judged {
		at.toOutward()
		return
	}
	if at.Replay == nil {
		return
	}
	at.Replay = slices.Clone(at.Replay)
	is := screen.NewState(int(at.Size.Cols), int(at.Size.Rows))
	is.Write(at.Replay)
	secrets := masksIn(rules, at.Replay)
	for _, m := range secrets {
		m.Put(at.Replay, 0)
	}
	at.Masked = len(secrets)
	unknown := keyLines().Match(at.Replay) || bytes.Contains(at.Replay, []byte("-----END ")) && !bytes.Contains(at.Replay, []byte("-----BEGIN ")) // the rest of a private key
	before := shownBefore(is)
	next := make([]byte, nextLook)
	_, n := s.fill(next, ViewText, at.Raw, min(at.Raw+nextLook, s.texted), false)
	for _, m := range masksIn(rules, append(slices.Clip(before), next[:n]...)) {
		unknown = unknown || m.Start < int64(len(before)) && m.End > int64(len(before))
	}
	if unknown {
		at.Masked, at.Replay, at.Exact = 0, nil, false
	}
}

// nextLook is how far behind a screen the rest of a secret is looked for, in bytes: the
// longest tokens fit.
const nextLook = 2 << 10

// keyLines matches two long lines of base64, one below the other, as bytes of a screen.
var keyLines = lazyregexp.New(`[A-Za-z0-9+/]{48,}[^A-Za-z].{0,16}?[A-Za-z0-9+/]{48,}`)

// masksIn returns the places of secrets in a text.
func masksIn(rules *redact.Rules, text []byte) []redact.Mask {
	f := redact.NewFilter(rules, 0)
	f.Feed(bytes.ToValidUTF8(text, []byte{'?'}))
	f.Flush()
	secrets, _ := f.Take()
	return secrets
}

// shownBefore returns the text of a screen before its cursor, with full lines joined. A
// secret may begin there and continue behind the screen.
func shownBefore(s *screen.Screen) []byte {
	cols, _ := s.Size()
	x, y := s.Cursor()
	var text []byte
	for line := range strings.Lines(s.Text()) {
		line = strings.TrimSuffix(line, "\n")
		if y == 0 {
			return append(text, string([]rune(line)[:min(x, len([]rune(line)))])...)
		}
		text = append(text, line...)
		if y--; len([]rune(line)) < cols {
			text = append(text, "\r\n"...)
		}
	}
	return text
}
