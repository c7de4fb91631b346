package term

import "tether/agent/output"

// Bounds of the state, besides its output, that a child can make the terminal remember.
const (
	maxTitle = 4 << 10  // bytes; longer titles are cut at a rune
	maxCwd   = 4 << 10  // bytes; PATH_MAX on Linux; longer reports are cut at a rune
	maxLine  = 32 << 10 // bytes of a command line; half of the smallest frame that a host must accept
	// maxCommands bounds the list behind Handle.Commands; older ones are forgotten first.
	maxCommands = 1000
	// maxLines bounds the command lines in that list, in bytes.
	maxLines = 1 << 20
)

// putMarkLocked appends a mark and applies it to the terminal's state. A reader that has
// read a size also reads the one that replaces it.
func (t *Terminal) putMarkLocked(m output.Mark) {
	t.putSizesLocked(m.Off)
	n := t.log.Put(m)
	for r := range t.readers.open {
		r.mark = min(r.mark, n)
	}
	switch m.Kind {
	case output.MarkDetection:
		t.commands.detected = true
	case output.MarkCommandExecuted:
		t.commands.remember(m.Command, t.log.Limit())
	case output.MarkCommandFinished:
		if c := t.commands.find(m.Command.N); c != nil {
			*c = m.Command
		}
	case output.MarkTitle:
		t.display.title = m.Text
	case output.MarkCwd:
		t.display.cwd = m.Text
	case output.MarkResized:
		t.display.size = m.Size
	case output.MarkExited:
		t.ending.exit = &m.Exit
	}
}
