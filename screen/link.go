package screen

import (
	"slices"
	"strings"
)

// Bounds of the targets of links in text, in bytes.
const (
	maxTarget  = 500     // of one link
	maxTargets = 2 << 10 // of a row; a program may put each character into a link of its own
)

// ShowLinks makes texts of the screen have the targets of links behind what is linked:
// text [URL]. Targets that are the text itself, that are longer than 500 bytes, or that
// are not http or https, such as the files that ls links, are left out. It is for texts
// that a model reads. Lines that have left the screen before it is called stay as they
// are.
func (s *Screen) ShowLinks() { s.showLinks = true }

// linkOf returns the number of the cell's link, 0 if it has none.
func (s *Screen) linkOf(c *cell) uint32 {
	if c.ext == 0 || int(c.ext) >= len(s.tables.extras) {
		return 0
	}
	return s.tables.extras[c.ext].link
}

// linkText is the link in a row whose text is being appended.
type linkText struct {
	s       *Screen
	link    uint32
	begin   int  // of the linked text
	wrapped bool // the link may have begun in an earlier row
	left    int  // bytes of targets that the row may still have
}

// change ends the link that the text b is in, and begins another; 0 is none. end is the
// end of the text that can be seen. It returns b and end with the target behind the text.
func (l *linkText) change(b []byte, end int, link uint32) ([]byte, int) {
	if url := l.target(string(b[l.begin:max(end, l.begin)])); url != "" {
		b = slices.Insert(b, end, []byte(" ["+url+"]")...)
		end += len(url) + len(" []")
		l.left -= len(url)
	}
	l.link, l.begin, l.wrapped = link, len(b), l.wrapped && l.link == 0 && l.begin == len(b)
	return b, end
}

// target returns the target of the link, or "" if it is not shown behind the text.
func (l *linkText) target(text string) string {
	if l.link == 0 || strings.TrimSpace(text) == "" {
		return ""
	}
	_, url, _ := strings.Cut(l.s.tables.links[l.link], ";")
	lower := strings.ToLower(url[:min(len(url), len("https://"))])
	is, bare := strings.TrimSuffix(strings.TrimSpace(text), "/"), strings.TrimSuffix(url, "/")
	switch {
	case !strings.HasPrefix(lower, "http://") && !strings.HasPrefix(lower, "https://"):
		return ""
	case len(url) > min(maxTarget, l.left) || Clean(url) != url:
		return ""
	case bare == is, l.wrapped && strings.HasSuffix(bare, is):
		return ""
	}
	return url
}
