package term

import (
	"regexp"
	"strings"

	"tether/internal/clip"
)

// display is the display metadata from the terminal's marks: values that the child has set, and the person by the size of a window. Guarded
// by the terminal's mutex.
type display struct {
	title string // "" before the first: then the terminal's name is
	cwd   string
	size  Size
	// sizing has one slot, taken by resize before the mutex, so that the last mark is the pty's size.
	sizing chan struct{}
}

// resize changes the size of the pty and records it. The same size again does nothing.
func (t *Terminal) resize(s Size) error {
	if err := checkSize(s); err != nil {
		return err
	}
	t.display.sizing <- struct{}{}
	defer func() { <-t.display.sizing }()
	t.mu.Lock()
	same, over := t.display.size == s, t.ending.exit != nil
	t.mu.Unlock()
	if over {
		return ErrExited
	}
	if same {
		return nil
	}
	if err := t.pty.Resize(s); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending.exit != nil {
		return ErrExited // meanwhile; nothing may follow that mark
	}
	t.putMarkLocked(Mark{Kind: MarkResized, Off: t.stream.texted, Size: s})
	t.boundLocked(t.heldForLocked())
	if t.holder != nil {
		t.staleLocked()
	}
	t.wakeLocked()
	return nil
}

// windowsPath is the form of an absolute path there.
var windowsPath = regexp.MustCompile(`^[A-Za-z]:\\`)

// titleOf is the title that text stands for. Windows names a console after the file of its program, and cmd.exe does between two commands,
// which says less than the terminal's own name.
func (o *origin) titleOf(text string) string {
	title := clip.Text(strings.ToValidUTF8(text, "\uFFFD"), maxTitle)
	if len(o.command) > 0 && windowsPath.MatchString(title) && programName(title) == programName(o.command[0]) {
		return o.name
	}
	return title
}

// programName is a program's name in lower case, without directory and .exe.
func programName(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}
