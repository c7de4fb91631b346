package history

import (
	"errors"
	"slices"
)

// rewrite writes a segment anew: without some of its text, and with frames that are as
// large as they may be. It returns the new size, 0 if nothing is left and the file is
// removed, and the bytes of text.
func (h *History) rewrite(terminal string, off int64, without []Span) (size, text int64, err error) {
	data, err := h.readSegment(terminal, off)
	if err != nil {
		return 0, 0, err
	}
	name := terminal + "/" + segmentName(off)
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
		return 0, 0, h.fs.Remove(name)
	}
	return int64(len(out)), text, h.replace(name, out)
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

// replace writes a file anew, so that after a loss of power it is the old one or the new.
func (h *History) replace(name string, data []byte) error {
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
	return h.fs.Rename(name+newExt, name)
}

// pruneLocked writes the notes anew without some.
func (w *Writer) pruneLocked(drop func(i int, n *Note, newest bool) bool) error {
	if w.noted == 0 {
		return nil
	}
	type kept struct {
		note Note
		line []byte
	}
	var all []kept
	newest := map[string]int{} // of the notes that replace each other
	err := w.h.notes(w.id, func(n Note, line []byte) {
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
	if w.notes != nil { // some systems do not replace open files
		w.notes.Close()
		w.notes = nil
	}
	w.renamed = true
	if err := w.h.replace(w.id+"/"+notesName, out); err != nil {
		return err
	}
	w.h.grow(&w.noted, int64(len(out))-w.noted)
	return nil
}

// tooManyLocked drops the older half of the notes, but for those that are still true.
func (w *Writer) tooManyLocked() func(int, *Note, bool) bool {
	lines := 0
	_ = w.h.notes(w.id, func(Note, []byte) { lines++ })
	return func(i int, _ *Note, newest bool) bool { return i < lines/2 && !newest }
}
