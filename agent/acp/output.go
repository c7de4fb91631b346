package acp

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"tether/agent/ring"
	"tether/internal/jsonspan"
	"tether/internal/plain"
)

const (
	defaultLimit = 1 << 20 // bytes of output when the agent names no limit
	keepScratch  = 4 << 20 // bytes of scratch space that are kept between writes
	maxLimit     = 8 << 20 // bytes; upper bound of the agent's limit
)

// output is the text that terminal/output returns: the newest text within a limit. It is
// guarded by the terminal's mutex.
type output struct {
	limit int  // bytes
	ansi  bool // keep escape sequences
	lines plain.Lines
	text  plain.Renderer
	line  []byte // without ansi: the text of the unfinished line, unless stale
	stale bool
	log   *ring.Log // without ansi: finished lines; with ansi: everything
	after bool      // with ansi: the last byte was CR; the next byte decides whether it is kept

	scratch []byte
	quoted  []byte // the last result of snapshot; nil if output has arrived since
}

// newOutput returns an empty output. limit is the agent's, nil if it gave none.
func newOutput(limit *uint64, ansi bool) *output {
	o := &output{limit: defaultLimit, ansi: ansi, text: plain.Renderer{Links: true}}
	if limit != nil {
		o.limit = int(min(*limit, maxLimit))
	}
	o.log = ring.New(o.limit)
	return o
}

func (o *output) write(p []byte) {
	o.quoted = nil
	if o.ansi {
		o.scratch = o.lineEnds(o.scratch[:0], p)
	} else {
		o.scratch = o.scratch[:0]
		o.lines.Spill = func(text []byte) { o.scratch = append(o.scratch, text...) }
		o.lines.Write(0, p, func(_, _ int64, raw []byte) {
			text := o.text.Text(raw)
			if len(text) > 0 || bytes.HasSuffix(raw, []byte{'\n'}) {
				o.scratch = append(append(o.scratch, text...), '\n')
			}
		})
		o.stale = true
	}
	o.log.Append(o.scratch)
	if cap(o.scratch) > keepScratch {
		o.scratch = nil
	}
}

// last returns the text of the unfinished line.
func (o *output) last() []byte {
	if o.stale {
		o.line, o.stale = append(o.line[:0], o.text.Unfinished(o.lines.Part)...), false
	}
	return o.line
}

// note adds a line of our own.
func (o *output) note(text string) {
	if o.log.End() > 0 || len(o.last()) > 0 {
		text = "\n" + text
	}
	o.write([]byte(text + "\n"))
}

// lineEnds appends p to dst with each CR LF replaced by LF.
func (o *output) lineEnds(dst, p []byte) []byte {
	for _, c := range p {
		if o.after && c != '\n' {
			dst = append(dst, '\r')
		}
		if o.after = c == '\r'; !o.after {
			dst = append(dst, c)
		}
	}
	return dst
}

// truncated reports whether text was dropped because of the limit.
func (o *output) truncated() bool { return o.log.End()+int64(len(o.last())) > int64(o.limit) }

// tail returns the newest text, at most n bytes. It begins at a character and, as far as
// cutSequence can tell, outside escape sequences.
func (o *output) tail(n int) []byte {
	line := o.last()
	if len(line) > n {
		line = line[len(line)-n:]
	}
	end := o.log.End()
	a, b := o.log.Slices(max(end-int64(n-len(line)), o.log.Start()), n)
	text := bytes.Join([][]byte{a, b, line}, nil)
	if len(text) == 0 || o.log.End()+int64(len(o.last())) == int64(len(text)) {
		return text
	}
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	if o.ansi {
		text = text[cutSequence(text):]
	}
	return text
}

// cutLook bounds how far cutSequence looks, in bytes.
const cutLook = 256

// cutSequence returns the index at which text can begin if its first bytes may be the
// rest of an escape sequence. That is the begin of the next line or sequence within
// cutLook, or 0 if there is none.
func cutSequence(text []byte) int {
	near := text[:min(len(text), cutLook)]
	if i := bytes.IndexAny(near, "\n\x1b"); i >= 0 {
		if near[i] == '\n' {
			i++
		}
		return i
	}
	return 0
}

// snapshot returns the text as a JSON string. The string is cached until more output
// arrives, because agents poll. The returned slice is never changed.
func (o *output) snapshot() []byte {
	if o.quoted == nil {
		o.quoted = jsonspan.AppendQuote(nil, o.tail(o.limit))
	}
	return o.quoted
}

// shrunk returns a smaller output that keeps the last n bytes. o stays unchanged.
func (o *output) shrunk(n int) *output {
	s := &output{limit: n, ansi: o.ansi, line: slices.Clone(o.last()), log: ring.New(n), after: o.after}
	text := o.tail(n)
	s.lines.Part = slices.Clone(o.lines.Part)
	if len(o.last()) <= len(text) {
		s.log.Append(text[:len(text)-len(o.last())])
	}
	return s
}
