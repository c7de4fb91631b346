package term

import (
	"strings"

	"tether/agent/output"
	"tether/internal/clip"
	"tether/internal/lazyregexp"
)

// display is the display metadata from the terminal's marks: the child sets title and
// directory, and the person sets the size by a window. Guarded by the terminal's mutex.
type display struct {
	title string // "" before the first title: then the terminal's name is shown
	cwd   string
	size  Size
	// sizing is a lock of one slot that resize takes before the mutex, so that the last
	// mark is the pty's size.
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
		return ErrExited // it has exited meanwhile; nothing may follow MarkExited
	}
	t.putMarkLocked(output.Mark{Kind: output.MarkResized, Off: t.log.Texted(), Size: s})
	t.log.Bound(t.heldForLocked())
	if t.holder != nil {
		t.staleLocked()
	}
	t.wakeLocked()
	return nil
}

// windowsPath matches an absolute path of Windows.
var windowsPath = lazyregexp.New(`^[A-Za-z]:\\`)

// titleOf returns the title to show for a reported one. Windows sets a console's title to
// the file of its program, and cmd.exe does so between two commands; the terminal's own
// name says more.
func (o *origin) titleOf(text string) string {
	title := clip.Text(strings.ToValidUTF8(text, "\uFFFD"), maxTitle)
	if len(o.command) > 0 && windowsPath().MatchString(title) && programName(title) == programName(o.command[0]) {
		return o.name
	}
	return title
}

// programName returns a program's name in lower case, without directory and .exe.
func programName(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}
