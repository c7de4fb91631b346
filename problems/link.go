package problems

import (
	"bytes"
	"slices"
	"strings"
)

const (
	maxLinked = 16  // lines with links that are remembered
	maxMarks  = 8   // links of one of them
	maxBefore = 200 // bytes before a link's target that are looked for in a message
)

// linked is a line with links.
type linked struct {
	start int64
	text  string // without their targets
	marks []mark
}

// mark is a link's target, shown at a place in the text.
type mark struct {
	at  int
	url string
}

// noteLinks remembers a line with links whose targets models see. Matchers read the line
// without them.
func (t *Tracker) noteLinks(start int64, raw, text []byte) {
	if !bytes.Contains(raw, []byte("\x1b]8;")) {
		return
	}
	t.shown.Links = true
	l := linked{start: start, text: string(text)}
	at := 0
	for with := string(t.shown.Unfinished(raw)); with != "" && len(l.marks) < maxMarks; {
		more := len(with) > len(text)-at
		if at < len(text) && with[0] == text[at] && !(more && strings.HasPrefix(with, " [http")) {
			with, at = with[1:], at+1
			continue
		}
		url, rest, ok := strings.Cut(strings.TrimPrefix(with, " ["), "]")
		if !ok {
			break
		}
		l.marks, with = append(l.marks, mark{at, url}), rest
	}
	if len(l.marks) == 0 {
		return
	}
	if len(t.links) == maxLinked {
		t.links = slices.Delete(t.links, 0, 1)
	}
	t.links = append(t.links, l)
}

// link puts the targets of the links of a problem's lines where models read them: into
// the message, behind what is linked, and beside the code.
func (t *Tracker) link(p *Problem) {
	from := 0
	for _, l := range t.links {
		if l.start < p.First || l.start >= p.Last {
			continue
		}
		for _, m := range l.marks {
			before := l.text[:m.at]
			if p.Code != "" && (strings.HasSuffix(before, p.Code) || strings.HasSuffix(before, p.Code+"]")) {
				p.Href = m.url
				continue
			}
			if at := behind(p.Message[from:], before); at > 0 {
				from += at
				p.Message = p.Message[:from] + " [" + m.url + "]" + p.Message[from:]
				from += len(m.url) + len(" []")
			}
		}
	}
	p.Message = clip(p.Message, maxMessage)
}

// behind returns where in the message the longest run of words stands that ends a text,
// and 0 if none does: the place behind it.
func behind(message, text string) int {
	text = text[max(0, len(text)-maxBefore):]
	for words := text; len(words) > 2; {
		if at := strings.Index(message, words); at >= 0 {
			return at + len(words)
		}
		_, words, _ = strings.Cut(words, " ")
	}
	return 0
}

// quotable returns a line, which may lack the name before it, with the targets of its
// links.
func (t *Tracker) quotable(line string, start int64) string {
	for _, l := range t.links {
		before, ok := strings.CutSuffix(l.text, line)
		if l.start != start || !ok {
			continue
		}
		for _, m := range slices.Backward(l.marks) {
			if at := m.at - len(before); at > 0 {
				line = line[:at] + " [" + m.url + "]" + line[at:]
			}
		}
	}
	return line
}
