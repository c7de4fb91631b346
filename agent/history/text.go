package history

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"slices"
	"time"

	"tether/internal/jsonspan"
)

// Text reads the kept text of a run. It is for one goroutine. What is printed after it
// was opened may be in it or not.
type Text struct {
	h        *History
	terminal string
	from, to int64 // text offsets
	last     int64 // offset of the last note
	pos      int64 // everything before was returned
	segments []int64
	frames   func() (header, []byte, bool) // of the open segment
	stop     func()
	tail     Frame // text that is in no file yet
}

// Text opens the text of a run. The caller must Close it.
func (h *History) Text(id string) (*Text, error) {
	r, err := h.Run(id)
	if err != nil {
		return nil, err
	}
	t := &Text{h: h, terminal: r.Terminal, from: r.Start, to: r.End, pos: r.Start, last: r.End}
	if r.End < 0 {
		t.last = maxOffset
	}
	t.segments, t.tail, err = h.parts(r.Terminal)
	if t.to < 0 {
		t.to = t.tail.End()
	}
	return t, err
}

// parts returns the offsets of a terminal's segments, oldest first, and the text behind
// that is in none of them yet.
func (h *History) parts(terminal string) (segments []int64, tail Frame, err error) {
	w := h.writer(terminal)
	if w == nil {
		segments, err = h.segments(terminal)
		return segments, Frame{Off: maxOffset}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.segments {
		segments = append(segments, s.off)
	}
	return segments, Frame{Off: w.end - int64(len(w.buf)), Data: slices.Clone(w.buf), First: w.first, Time: w.last}, nil
}

// segments returns the offsets of a terminal's segments, in order.
func (h *History) segments(terminal string) ([]int64, error) {
	entries, err := h.fs.List(terminal)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it has printed nothing
	}
	var offs []int64
	for _, e := range entries {
		if off, ok := parseSegmentName(e.Name); ok && !e.Dir {
			offs = append(offs, off)
		}
	}
	slices.Sort(offs)
	return offs, err
}

// End is the offset after the run's text; of a run without an end after what there was
// when it was opened.
func (t *Text) End() int64 { return t.to }

// SeekTo continues at a text offset.
func (t *Text) SeekTo(off int64) { t.pos, t.from = max(t.pos, off), max(t.from, off) }

// Next returns the next piece of text, and io.EOF after the last one. Text that is not
// kept is Missing in the frame behind it; behind the last frame End tells. After another
// error it goes on behind the file that could not be read.
func (t *Text) Next() (Frame, error) {
	for {
		f, err := t.next()
		if err != nil {
			return Frame{}, err
		}
		if f.clip(t.pos, t.to) {
			f.Missing = f.Off - t.pos
			t.pos = f.End()
			return f, nil
		}
	}
}

// clip cuts what is not between from and to, and reports whether something is left.
func (f *Frame) clip(from, to int64) bool {
	if f.Off < from {
		n := min(from-f.Off, int64(len(f.Data)))
		f.Data, f.Off = f.Data[n:], f.Off+n
	}
	if f.End() > to {
		f.Data = f.Data[:max(0, to-f.Off)]
	}
	return len(f.Data) > 0
}

func (t *Text) next() (Frame, error) {
	for {
		if t.frames != nil {
			if hd, packed, ok := t.frames(); ok {
				if hd.off+int64(hd.text) <= t.pos || hd.off >= t.to {
					continue
				}
				if data, ok := t.h.codec.unpack(nil, hd, packed); ok {
					return frameOf(hd, data), nil
				}
				continue
			}
			t.Close()
		}
		if len(t.segments) == 0 {
			f := t.tail
			t.tail = Frame{}
			if len(f.Data) == 0 {
				return f, io.EOF
			}
			return f, nil
		}
		off := t.segments[0]
		t.segments = t.segments[1:]
		if off >= t.to || len(t.segments) > 0 && t.segments[0] <= t.pos {
			continue
		}
		data, err := t.h.readSegment(t.terminal, off)
		if err != nil {
			return Frame{}, err
		}
		t.frames, t.stop = iter.Pull2(headers(data))
	}
}

func frameOf(hd header, data []byte) Frame {
	return Frame{Off: hd.off, Data: data, First: time.UnixMicro(hd.first).UTC(), Time: time.UnixMicro(hd.last).UTC()}
}

// Close ends the reading.
func (t *Text) Close() {
	if t.stop != nil {
		t.stop()
		t.frames, t.stop = nil, nil
	}
}

// readSegment returns a segment, nil if it was removed.
func (h *History) readSegment(terminal string, off int64) ([]byte, error) {
	return h.readFile(nil, terminal+"/"+segmentName(off), maxSegment)
}

// readFile returns at most max bytes of a file, in buf if they fit; nil if there is none.
func (h *History) readFile(buf []byte, name string, max int64) ([]byte, error) {
	src, err := h.fs.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer src.Close()
	size, err := src.Size()
	if err != nil {
		return nil, err
	}
	data := slices.Grow(buf[:0], int(min(size, max)))[:min(size, max)]
	n, err := src.ReadAt(data, 0)
	if err == io.EOF {
		err = nil
	}
	return data[:n], err
}

// Notes returns the notes of the run's terminal up to the run's end, oldest first. After
// a loss of power some of a terminal that goes on may be ahead of its text.
func (t *Text) Notes() ([]Note, error) {
	var notes []Note
	err := t.h.notes(t.terminal, maxOffset, func(n Note, _ []byte) {
		if n.Off <= t.last {
			notes = append(notes, n)
		}
	})
	return notes, err
}

// notes calls visit with a terminal's notes in the first max bytes of their file, and
// their lines. What is damaged is passed over.
func (h *History) notes(terminal string, max int64, visit func(n Note, line []byte)) error {
	src, err := h.fs.Open(terminal + "/" + notesName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer src.Close()
	size, err := src.Size()
	if err != nil {
		return err
	}
	for line := range linesOf(src, min(size, max), &err) {
		var n Note
		if line.whole && len(line.text) > 0 && jsonspan.Unmarshal(line.text, &n) == nil && n.Off >= 0 && n.Off <= maxOffset {
			visit(n, line.text)
		}
	}
	return err
}
