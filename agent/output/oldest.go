package output

import (
	"bytes"
	"slices"
	"strings"

	"tether/agent/redact"
	"tether/agent/ring"
	"tether/internal/lazyregexp"
	"tether/record"
	"tether/screen"
)

// advancePart is the fraction of a log's bound that dropped output may take while it
// waits for the screen to process it. The more it processes at once, the cheaper are
// lines that scroll away at once.
const advancePart = 32

// oldest is the screen at the oldest byte of a log, or a little behind it: the result of
// the dropped output. Positions are raw offsets.
type oldest struct {
	record.Backdrop
	marks int64 // number of the first mark that the screen has not processed

	outward outwardScreen

	ahead bool     // see emulateAhead
	stops []int64  // raw offsets at which the screen is to be stored, ascending
	kept  []Screen // stored screens, up to the screen's position and within the log, ascending
}

// lose records that the output before a raw offset is unknown.
func (o *oldest) lose(raw int64) {
	o.Lose(raw)
	o.outward, o.stops, o.kept = outwardScreen{judge: o.outward.judge}, nil, nil
}

// GiveUp drops the screen if it takes more than so many bytes, because memory is short.
// Screens that are stored for the next daemon have a bound of their own and stay.
func (l *Log) GiveUp(most int) {
	if o := &l.oldest; o.Cost()+o.outward.cost() > most {
		o.Lose(o.At())
		o.outward = outwardScreen{judge: o.outward.judge}
	}
}

// resize gives the screen another size.
func (o *oldest) resize(z Size) {
	o.Resize(int(z.Cols), int(z.Rows))
	if o.outward.screen != nil {
		o.outward.flush()
		o.outward.screen.Resize(int(z.Cols), int(z.Rows))
	}
}

// cost is the memory that it takes, in bytes.
func (o *oldest) cost() int {
	n := o.Cost() + o.outward.cost()
	for i := range o.kept {
		n += o.kept[i].Cost()
	}
	return n
}

// shown returns the screen, after it has processed the waiting output.
func (o *oldest) shown() Screen {
	o.outward.flush()
	is := o.Show()
	shown := Screen{Raw: o.At(), Size: Size{Cols: uint16(is.Cols), Rows: uint16(is.Rows)}, Replay: is.Replay, Exact: is.Exact}
	shown.outward, shown.judged = o.outward.shown(&shown)
	return shown
}

// leave processes the output before a raw offset, which the log is about to drop. Output
// that the scanner has not judged yet would be lost; that does not happen, because a log
// is larger than the scanner's undecided part.
func (l *Log) leave(to int64) {
	l.leaveTo(to)
	l.oldest.forget(to)
	l.emulateAhead(to)
}

func (l *Log) leaveTo(to int64) {
	o := &l.oldest
	if to <= o.At() {
		return
	}
	known := min(to, l.decided)
	for o.At() < known {
		limit := known
		n := max(l.marks.Search(o.At()), o.marks)
		for ; n < l.marks.End(); n++ {
			m := l.marks.At(n)
			if m.Off >= known || m.Kind == MarkResized && m.Off > o.At() {
				limit = min(limit, m.Off)
				break
			}
			if m.Kind == MarkResized {
				o.resize(m.Size)
			}
		}
		o.marks = n
		l.leavePiece(limit)
	}
	if o.At() < to {
		o.lose(to)
	}
}

// leavePiece processes the output up to a raw offset, within which the size does not
// change.
func (l *Log) leavePiece(to int64) {
	o := &l.oldest
	l.leaveOutward(o.At(), to)
	for o.At() < to {
		text := o.Room()
		end, n := l.fill(text[:cap(text)], ViewScreen, o.At(), to, false)
		if end == o.At() {
			o.lose(to) // impossible: there is room
			return
		}
		o.Leave(text[:n], end)
	}
}

// SetLimit changes the bound of the log, in bytes. What no longer fits is dropped.
func (l *Log) SetLimit(limit int) {
	if low := l.log.End() - int64(ring.New(limit).Limit()); low > l.log.Start() {
		l.leave(low)
	}
	l.log.SetLimit(limit)
	l.oldest.SetBatch(l.log.Limit() / advancePart)
}

// firstScreen returns the oldest exact screen that is known or, if there is none, the
// oldest of all: the result of the output before Screen.Raw.
func (l *Log) firstScreen() Screen {
	l.leave(l.log.Start())
	return l.oldest.first()
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

// Cost is the memory that it takes, in bytes.
func (a *Screen) Cost() int {
	if a.isMasked() {
		return len(a.Replay) + len(a.outward)
	}
	return len(a.Replay)
}

// isMasked reports whether hosts see a different screen.
func (a *Screen) isMasked() bool {
	return len(a.outward) > 0 && (len(a.Replay) != len(a.outward) || &a.outward[0] != &a.Replay[0])
}

// maskScreen masks a screen for an agent, and counts the masked places. If a part of it
// was printed while nobody looked for secrets, it masks the secrets that are on the
// screen now, and removes text that may be a part of a secret: the rest has scrolled
// away, or is printed later.
func (l *Log) maskScreen(at *Screen, rules *redact.Rules) {
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
	_, n := l.fill(next, ViewText, at.Raw, min(at.Raw+nextLook, l.texted), false)
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
func shownBefore(is *screen.Screen) []byte {
	cols, _ := is.Size()
	x, y := is.Cursor()
	var text []byte
	for line := range strings.Lines(is.Text()) {
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
