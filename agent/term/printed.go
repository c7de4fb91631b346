package term

import (
	"strings"
	"time"

	"tether/agent/output"
	"tether/internal/lazyregexp"
	"tether/shellint"
	"tether/vocab"
)

// A Recovery reports a panic caused by a child's output, which the terminal has survived.
type Recovery struct {
	ID ID
	output.Bug
}

// printed is a Terminal as its log sees it: an [output.Owner].
type printed struct{ t *Terminal }

// Appended keeps the state up to date that follows from output.
func (p printed) Appended(found *shellint.Result, now time.Time) {
	t := p.t
	t.activity.printed = now
	t.stirLocked()
	if _, can := t.pty.(looker); !t.log.Restoring() {
		t.answering.Asked(found, now, can)
	}
	t.needLocked()
	t.paceLocked()
	t.chargeLocked()
}

// Marked does what follows from an event.
func (p printed) Marked(m *output.Mark) {
	t := p.t
	switch m.Kind {
	case output.MarkCommandExecuted:
		t.placeLocked(m.Command)
	case output.MarkCwd:
		t.foreseeLocked()
		t.recheckLendingLocked()
	case output.MarkResized:
		if !t.log.Restoring() {
			t.staleLocked()
		}
	}
}

// Commands makes the holder keep commands.
func (p printed) Commands() { p.t.keepLaterLocked() }

// Keep makes the holder keep checkpoints and screens.
func (p printed) Keep() { p.t.saveLocked() }

// Restored ends an adoption.
func (p printed) Restored() {
	close(p.t.life.caught)
	p.t.needLocked()
}

// Moved makes the child go on for which a reader has made room.
func (p printed) Moved() {
	p.t.needLocked()
	p.t.stretchLocked()
	p.t.paceLocked()
	p.t.holding.makeRoom()
}

// Recovered reports a bug.
func (p printed) Recovered(bug output.Bug) {
	if f := p.t.pool.opts.Recovered; f != nil {
		f(Recovery{p.t.id, bug})
	}
}

// take records new output of the child. Only pump and takeNow call it.
func (t *Terminal) take(p []byte) {
	t.log.Append(p, time.Now())
	if t.pool.memory.Over() {
		t.pool.trim()
	}
}

// foreseeLocked has the checkout of the terminal's directory looked for, so that lists
// know it.
func (t *Terminal) foreseeLocked() {
	if find := t.pool.opts.Checkout; find != nil {
		find(t.log.Cwd(), time.Now(), func(vocab.Checkout) {})
	}
}

// placeLocked arranges that the checkout in which a command has begun is added to it.
func (t *Terminal) placeLocked(c vocab.Command) {
	if t.pool.opts.Checkout == nil || t.log.Restoring() || c.Within > 0 { // a command within ssh has its directory elsewhere
		return
	}
	t.pool.opts.Checkout(t.log.Cwd(), c.Started, func(is vocab.Checkout) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.log.SetCheckout(c, is)
	})
}

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
