package redact

import (
	"slices"
	"unicode/utf8"

	"tether/shellint"
)

// Safe passes a terminal's output on to the person's own terminal without the sequences
// that do not leave the machine: those that make a terminal answer, set the clipboard,
// print or save a file. It masks no secrets. Unlike a Filter it takes any bytes in any
// pieces, and removes what a Filter overwrites, because there are terminals that print
// filler. It holds back at most 4 KiB of undecided text. It is not safe for concurrent
// use.
//
//	Append --scanner: no queries, no clipboard, no marks--> text --sequences: everything else--> dst
type Safe struct {
	scanner *shellint.Scanner
	result  shellint.Result
	raw     []byte // output that the scanner has not decided
	rawAt   int64  // offset of raw in the output

	sequences sanitizer
	text      []byte // text that sequences has not decided
	fed       int    // bytes of text that sequences has; the rest is an incomplete character
	textAt    int64  // offset of text in the text
}

// NewSafe returns a Safe at the start of a terminal's output. Of o, only FileLinks,
// Images and Silent have an effect. Images, notifications and titles are limited in
// total.
func NewSafe(o Options) *Safe {
	s := &Safe{scanner: shellint.NewScanner(shellint.Options{}), sequences: sanitizer{opts: &o}}
	s.sequences.renew()
	return s
}

// Append takes the next output, and appends the part of the output so far that is decided
// by it to dst.
func (s *Safe) Append(dst, p []byte) []byte {
	s.raw = append(s.raw, p...)
	s.scanner.Scan(p, &s.result)
	s.scanned()
	s.feed(false)
	return s.decided(dst)
}

// End appends what was held back to dst, and ends a sequence that is open. The Safe must
// not be used afterwards.
func (s *Safe) End(dst []byte) []byte {
	s.scanner.Close(&s.result)
	s.scanned()
	s.feed(true)
	s.sequences.flush()
	dst = s.decided(dst)
	switch s.sequences.state {
	case ground:
	case afterESC, control:
		dst = append(dst, can)
	default:
		dst = append(dst, shellint.Splice...)
	}
	return dst
}

// AtRest reports whether nothing is held back and no sequence is open: a new Safe would
// do the same from here on, except for what the Options limit.
func (s *Safe) AtRest() bool {
	return len(s.raw) == 0 && len(s.text) == 0 && s.scanner.AtRest() && s.sequences.atRest()
}

// scanned moves output that the scanner has decided to text, without the removed
// sequences.
func (s *Safe) scanned() {
	plain := func(to int64) {
		if n := to - s.rawAt; n > 0 {
			s.text = append(s.text, s.raw[:n]...)
			s.leave(to)
		}
	}
	for _, span := range s.result.Spans {
		if span.Class != shellint.ClassQuery && span.Class != shellint.ClassClipboard && span.Class != shellint.ClassMark {
			continue
		}
		plain(span.Start)
		if span.Splice {
			s.text = append(s.text, shellint.Splice...)
		}
		s.leave(span.End)
	}
	plain(s.result.Decided)
}

// leave drops the raw bytes before the offset to.
func (s *Safe) leave(to int64) {
	if n := to - s.rawAt; n > 0 {
		s.raw, s.rawAt = append(s.raw[:0], s.raw[n:]...), to
	}
}

// feed gives sequences the text that it does not have, in whole characters. Bytes that
// are not UTF-8 become U+FFFD. all includes an incomplete character.
func (s *Safe) feed(all bool) {
	rest := s.text[s.fed:]
	n := len(rest)
	if !all {
		for k := 1; k < min(utf8.UTFMax, len(rest)+1); k++ {
			if c := rest[len(rest)-k]; utf8.RuneStart(c) {
				if !utf8.FullRune(rest[len(rest)-k:]) {
					n -= k
				}
				break
			}
		}
	}
	if !utf8.Valid(rest[:n]) {
		valid := []byte(string([]rune(string(rest[:n]))))
		s.text = append(s.text[:s.fed], append(valid, rest[n:]...)...)
		n = len(valid)
	}
	s.sequences.feed(s.text[s.fed:s.fed+n], 0, 0)
	s.fed += n
}

// decided moves text that sequences has decided to dst, without what is masked.
func (s *Safe) decided(dst []byte) []byte {
	at, end := s.textAt, s.sequences.done
	for _, m := range s.sequences.masks {
		if m.Start >= end {
			break
		}
		from, to := max(m.Start, at), min(m.End, end)
		dst = append(dst, s.text[at-s.textAt:from-s.textAt]...)
		for at = from; at < to; at++ {
			if m.Kind == Cancel || m.Kind == Close {
				dst = append(dst, m.at(at))
			}
		}
	}
	n := int(end - s.textAt)
	dst = append(dst, s.text[at-s.textAt:n]...)
	s.sequences.masks = slices.DeleteFunc(s.sequences.masks, func(m Mask) bool { return m.End <= end })
	s.text, s.fed, s.textAt = append(s.text[:0], s.text[n:]...), s.fed-n, end
	return dst
}
