package term

import (
	"strings"

	"tether/internal/lazyregexp"
)

// resize changes the size of the pty and records it. The same size again does nothing.
func (t *Terminal) resize(s Size) error {
	if err := checkSize(s); err != nil {
		return err
	}
	t.sizing <- struct{}{}
	defer func() { <-t.sizing }()
	t.mu.Lock()
	same, over := t.log.Size() == s, t.ending.exit != nil
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
	t.log.Resized(s)
	t.staleLocked()
	return nil
}

// windowsPath matches an absolute path of Windows.
var windowsPath = lazyregexp.New(`^[A-Za-z]:\\`)

// isProgram reports whether a title is the file of the terminal's program. Windows sets a
// console's title to that, and cmd.exe does so between two commands; the terminal's own
// name says more.
func (o *origin) isProgram(title string) bool {
	return len(o.command) > 0 && windowsPath().MatchString(title) && programName(title) == programName(o.command[0])
}

// programName returns a program's name in lower case, without directory and .exe.
func programName(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}
