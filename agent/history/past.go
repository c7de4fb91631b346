package history

import "iter"

// newest returns the runs that match, newest first. While they are looked at, the file is
// not open: some systems do not replace open files.
func (l *list) newest(matches func(*Run) bool, might func(line []byte) bool) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		p := past{l: l}
		for most := 8; p.read(most, matches, might); most = min(2*most, 256) {
			for _, r := range p.runs {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// past reads a list backwards, in steps.
type past struct {
	l    *list
	idx  index
	anew int   // of the list
	left int   // places of idx that were not read yet
	runs []Run // of the last step
}

// read reads the next runs, and reports whether there are any.
func (p *past) read(most int, matches func(*Run) bool, might func(line []byte) bool) bool {
	p.l.naming.RLock()
	src, size, err := p.l.source()
	anew := p.l.anew
	p.l.naming.RUnlock()
	if err != nil || src == nil {
		return false
	}
	defer src.Close()
	if err := p.find(src, size, anew); err != nil {
		return false
	}
	p.runs = p.runs[:0]
	w := lineWindow{src: src, size: size}
	for p.left > 0 && len(p.runs) < most {
		p.left--
		line, err := w.line(p.idx.places[p.left])
		if err != nil {
			return false
		}
		if !might(line) {
			continue
		}
		if r, err := decodeRun(line); err == nil && matches(&r) {
			p.runs = append(p.runs, r)
		}
	}
	return len(p.runs) > 0
}

// find reads the index first, and again if the list was written anew since the last step:
// it goes on before the oldest run that was read, or would have been.
func (p *past) find(src Source, size int64, anew int) (err error) {
	switch {
	case p.idx.known == nil:
		p.idx, err = readIndex(src, size)
		p.left = len(p.idx.places)
	case anew != p.anew:
		order := make([]uint64, len(p.idx.places))
		for hash, i := range p.idx.known {
			order[i] = hash
		}
		p.idx, err = readIndexAs(src, size, p.idx.seed)
		left := 0
		for i := p.left - 1; i >= 0 && left == 0; i-- {
			if at, ok := p.idx.known[order[i]]; ok {
				left = int(at) + 1
			}
		}
		p.left = left
	}
	p.anew = anew
	return err
}
