package history

import (
	"errors"
	"io"
	"slices"
)

// rewrite writes a segment anew beside: without some of its text, and with frames that
// are as large as they may be. It returns the new size, 0 without a file if nothing is
// left, and the bytes of text.
func (h *History) rewrite(terminal string, off int64, without []Span) (size, text int64, err error) {
	data, err := h.readSegment(terminal, off)
	if err != nil {
		return 0, 0, err
	}
	var out []byte
	var open Frame
	flush := func() {
		if len(open.Data) > 0 {
			text += int64(len(open.Data))
			out = h.codec.pack(out, &open)
		}
		open = Frame{}
	}
	var end int64
	for hd, packed := range headers(data) {
		plain, ok := h.codec.unpack(nil, hd, packed)
		if !ok {
			continue
		}
		f := frameOf(hd, plain)
		if !f.clip(end, maxOffset) {
			continue
		}
		end = f.End()
		for _, part := range f.minus(without) {
			if len(open.Data) > 0 && (part.Off != open.End() || len(open.Data)+len(part.Data) > h.bounds.frame ||
				part.Time.Sub(open.First) > h.bounds.joined) {
				flush()
			}
			if len(open.Data) == 0 {
				open = Frame{Off: part.Off, First: part.First}
			}
			open.Data = append(open.Data, part.Data...)
			open.Time = part.Time
		}
	}
	flush()
	if len(out) == 0 {
		return 0, 0, nil
	}
	return int64(len(out)), text, h.writeNew(terminal+"/"+segmentName(off), out)
}

// minus returns what is left of a frame without some spans.
func (f Frame) minus(without []Span) []Frame {
	parts := []Frame{f}
	for _, s := range without {
		var left []Frame
		for _, p := range parts {
			before, after := p, p
			if before.clip(0, s.From) {
				left = append(left, before)
			}
			if after.clip(s.To, maxOffset) {
				left = append(left, after)
			}
		}
		parts = left
	}
	return parts
}

// writeNew writes a file beside the one that it is to replace, so that after a loss of
// power that is the old one or the new.
func (h *History) writeNew(name string, data []byte) error {
	if err := h.fs.Remove(name + newExt); err != nil {
		return err
	}
	file, err := h.fs.Append(name + newExt)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, h.fs.Remove(name+newExt))
	}
	return nil
}

// prune writes the notes anew without some. Those that are added meanwhile stay.
func (w *Writer) prune(drop func(i int, n *Note, newest bool) bool) error {
	w.mu.Lock()
	was := w.noted
	w.mu.Unlock()
	if was == 0 {
		return nil
	}
	type kept struct {
		note Note
		line []byte
	}
	var all []kept
	newest := map[string]int{} // of the notes that replace each other
	err := w.h.notes(w.id, was, func(n Note, line []byte) {
		newest[n.state()] = len(all)
		all = append(all, kept{n, slices.Clone(line)})
	})
	if err != nil {
		return err
	}
	var out []byte
	for i, k := range all {
		state := k.note.state()
		if !drop(i, &k.note, state != "" && newest[state] == i) {
			out = append(append(out, k.line...), '\n')
		}
	}
	name := w.id + "/" + notesName
	if err := w.h.writeNew(name, out); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notes != nil { // some systems do not replace open files
		w.notes.Close()
		w.notes = nil
	}
	added, err := w.h.addTail(name, was)
	if err != nil {
		return err
	}
	w.renamed = true
	if err := w.h.fs.Rename(name+newExt, name); err != nil {
		return err
	}
	w.h.grow(&w.noted, int64(len(out))+added-w.noted)
	if added > 0 { // the next round syncs it
		w.unnoted = true
		w.notes, err = w.h.fs.Append(name)
	}
	return err
}

// addTail adds to a file that was written anew what the old one got after its first was
// bytes, and returns how much that is.
func (h *History) addTail(name string, was int64) (int64, error) {
	src, err := h.fs.Open(name)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	size, err := src.Size()
	if err != nil || size <= was {
		return 0, err
	}
	tail, err := io.ReadAll(io.NewSectionReader(src, was, size-was))
	if err != nil {
		return 0, err
	}
	file, err := h.fs.Append(name + newExt)
	if err != nil {
		return 0, err
	}
	_, err = file.Write(tail)
	return int64(len(tail)), errors.Join(err, file.Close())
}

// tooMany drops the older half of the notes, but for those that are still true.
func (w *Writer) tooMany() func(int, *Note, bool) bool {
	lines := 0
	_ = w.h.notes(w.id, maxOffset, func(Note, []byte) { lines++ })
	return func(i int, _ *Note, newest bool) bool { return i < lines/2 && !newest }
}
