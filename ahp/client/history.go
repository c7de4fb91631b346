package client

import (
	"slices"
	"unicode/utf8"

	"tether/ahp"
	"tether/internal/clip"
)

// partCost is the cost of a part besides its text, in bytes, so that many empty parts are
// bounded too.
const partCost = 64

// history is the retained tail of a terminal's output. It holds what package ahp's
// reducer would return, but it is bounded, and appending does not copy the existing text.
// It has no lock.
type history struct {
	limit int // bytes, of text and of parts' costs
	parts []part
	size  int // sum of the parts' costs, in bytes

	trimmed bool // something was dropped since the last clear or the last known screen
}

// part is a ContentPart whose text is in a buffer of its own.
type part struct {
	head ahp.ContentPart // without Value and Output
	buf  []byte          // buf[off:] is the text
	off  int
}

func (p *part) text() []byte { return p.buf[p.off:] }

func (p *part) cost() int {
	return partCost + len(p.text()) + len(p.head.CommandLine) + len(p.head.CommandID) + len(p.head.Raw)
}

// load replaces everything by the content of a snapshot.
func (h *history) load(content []ahp.ContentPart) {
	h.clear()
	for _, c := range content {
		p := part{head: c, buf: []byte(c.Text())}
		p.head.Value, p.head.Output = "", ""
		// The host may exceed our limits.
		p.head.CommandLine = clip.Text(c.CommandLine, ahp.MaxCommandLine)
		p.head.CommandID = clip.Text(c.CommandID, ahp.MaxCommandID)
		if len(c.Raw) > ahp.MaxCommandLine {
			continue
		}
		h.push(p)
	}
}

func (h *history) push(p part) {
	h.parts = append(h.parts, p)
	h.size += p.cost()
	h.trim()
}

func (h *history) clear() { h.parts, h.size, h.trimmed = nil, 0, false }

// write appends output.
func (h *history) write(text []byte) {
	last := len(h.parts) - 1
	if last < 0 || !open(h.parts[last].head) {
		h.push(part{head: ahp.ContentPart{Type: ahp.PartUnclassified}, buf: slices.Clone(text)})
		return
	}
	h.parts[last].write(text)
	h.size += len(text)
	h.trim()
}

func open(p ahp.ContentPart) bool {
	return p.Type == ahp.PartUnclassified || (p.Type == ahp.PartCommand && !p.IsComplete)
}

// write appends text. If the buffer is full and more than half of it is trimmed text, it
// moves the text to the front instead of growing the buffer.
func (p *part) write(text []byte) {
	if len(p.buf)+len(text) > cap(p.buf) && p.off > len(p.buf)/2 {
		p.buf = p.buf[:copy(p.buf, p.text())]
		p.off = 0
	}
	p.buf = append(p.buf, text...)
}

// start begins a command.
func (h *history) start(a ahp.TerminalCommandExecuted) {
	h.push(part{head: ahp.ContentPart{Type: ahp.PartCommand, CommandID: a.CommandID, CommandLine: a.CommandLine, Timestamp: a.Timestamp, Meta: a.Meta}})
}

// finish completes the command with that id, if it is still there.
func (h *history) finish(a ahp.TerminalCommandFinished) {
	for i := range h.parts {
		if p := &h.parts[i].head; p.Type == ahp.PartCommand && p.CommandID == a.CommandID {
			p.IsComplete, p.ExitCode, p.DurationMs = true, a.ExitCode, a.DurationMs
		}
	}
}

// trim drops whole parts from the front, then the beginning of the first remaining part,
// up to a character's start.
func (h *history) trim() {
	for len(h.parts) > 1 && h.size-h.parts[0].cost() >= h.limit {
		h.size -= h.parts[0].cost()
		h.parts[0] = part{} // release its text
		h.trimmed = true
		h.parts = h.parts[1:]
	}
	if h.size <= h.limit {
		return
	}
	p := &h.parts[0]
	text := p.text()
	n := min(h.size-h.limit, len(text))
	for n < len(text) && !utf8.RuneStart(text[n]) {
		n++
	}
	p.off += n
	h.size -= n
	h.trimmed = true
}

// length returns the length of the text, in bytes.
func (h *history) length() (n int64) {
	for i := range h.parts {
		n += int64(len(h.parts[i].text()))
	}
	return n
}

// content returns a copy of the parts.
func (h *history) content() []ahp.ContentPart {
	out := make([]ahp.ContentPart, 0, len(h.parts))
	for i := range h.parts {
		c := h.parts[i].head
		text := string(h.parts[i].text())
		if c.Type == ahp.PartCommand {
			c.Output = text
		} else if c.Type == ahp.PartUnclassified {
			c.Value = text
		}
		out = append(out, c)
	}
	return out
}
