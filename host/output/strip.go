package output

import (
	"tether/internal/jsonspan"
	"tether/shellint"
)

// AHP forbids that OSC 133 and 633 reach clients as data: their terminals would act on
// them. Owners have to remove them. Since an observer cannot know whether an owner does
// so, the host removes what is left. Positions in the owner's stream count the text as
// the owner sent it.

// stripper removes OSC 133 and 633 from one terminal's output, even if they are divided
// between actions. The terminal has one from the first text that may contain such a
// sequence until no sequence is open. Not safe for concurrent use.
type stripper struct {
	scanner *shellint.Scanner
	result  shellint.Result
	pending []byte // text that is not decided yet; at most shellint.MaxUndecided
	any     bool   // a mark was removed
}

// strip appends decoded text to dst, without the marks in it. It holds back what may be
// the beginning of a mark.
func (s *stripper) strip(dst, text []byte) []byte {
	s.scanner.Scan(text, &s.result)
	return s.take(dst, text)
}

// rest appends the held-back text, at the end of the stream.
func (s *stripper) rest(dst []byte) []byte {
	s.scanner.Close(&s.result)
	return s.take(dst, nil)
}

func (s *stripper) take(dst, text []byte) []byte {
	at := s.scanner.Offset() - int64(len(s.pending)+len(text))
	raw := append(s.pending, text...)
	for _, span := range s.result.Spans {
		if span.Class != shellint.ClassMark {
			continue
		}
		dst = append(dst, raw[:span.Start-at]...)
		if span.Splice || !s.any { // text before the scanner may have begun a sequence, which the mark ended
			dst = append(dst, shellint.Splice...)
		}
		s.any = true
		raw, at = raw[span.End-at:], span.End
	}
	decided := s.result.Decided - at
	dst = append(dst, raw[:decided]...)
	s.pending = append(s.pending[:0], raw[decided:]...)
	return dst
}

// stripped returns text of the owner without marks.
func (l *Log) stripped(t Text) Text {
	if l.strip == nil && !t.found.OSC {
		return t
	}
	if l.strip == nil {
		l.strip = &stripper{scanner: shellint.NewScanner(shellint.Options{})}
	}
	text, _ := jsonspan.AppendUnquote(nil, t.Quoted)
	out := requote(l.strip.strip(make([]byte, 0, len(text)), text))
	out.By = t.By
	if l.strip.scanner.AtRest() {
		l.strip = nil
	}
	return out
}

// endStrip appends the held-back text when the owner's text does not continue: at a gap
// and at the exit.
func (l *Log) endStrip() {
	if l.strip != nil {
		out := requote(l.strip.rest(nil))
		l.strip = nil
		l.Text(out)
	}
}
