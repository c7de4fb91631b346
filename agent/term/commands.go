package term

import (
	"slices"
	"strings"
	"time"

	"tether/agent/output"
	"tether/internal/clip"
	"tether/record"
	"tether/shellint"
	"tether/vocab"
)

// commands is the history of command lines, from a shell's marks. The pump adds to it,
// and so does announce. Guarded by the terminal's mutex.
type commands struct {
	tracker   shellint.Tracker
	detected  bool                        // a mark that counts was seen
	outer     *vocab.Command              // a command that was dropped from list while it was open, because of commands within it; nil if there is none
	list      record.Queue[vocab.Command] // the newest, by ascending number; only the last one, and the one in which it runs, may still be open
	lineBytes int                         // sum of the lengths of their lines
	doubt     *time.Timer                 // runs announce; nil before the first doubt
}

// remember adds c to the list, whose lines may take as much as a log.
func (c *commands) remember(one vocab.Command, logLimit int) {
	c.list.Push(one)
	c.lineBytes += len(one.Text())
	c.bound(logLimit)
}

// bound drops the oldest commands beyond the bounds, but never the last one.
func (c *commands) bound(logLimit int) {
	drop, lines := 0, min(maxLines, logLimit)
	for n := c.list.Len(); n-drop > 1 && (n-drop > maxCommands || c.lineBytes > lines); drop++ {
		one := c.list.At(drop)
		c.lineBytes -= len(one.Text())
		if one.Running {
			c.outer = new(*one)
		}
	}
	c.list.Drop(drop)
}

// find returns a remembered command by its number, or nil; the pointer is valid until the
// next remember.
func (c *commands) find(n int) *vocab.Command {
	for i := c.list.Len() - 1; i >= 0; i-- {
		if one := c.list.At(i); one.N == n {
			return one
		}
	}
	if c.outer != nil && c.outer.N == n {
		return c.outer
	}
	return nil
}

// running is a copy of the innermost command that is open at the raw offset, or nil.
func (c *commands) running(raw int64) *vocab.Command {
	if open := c.openAt(raw); len(open) > 0 {
		return &open[len(open)-1]
	}
	return nil
}

// openAt returns copies of the commands that are open at the raw offset: none, one, or an
// outer one and one within it.
func (c *commands) openAt(raw int64) []vocab.Command {
	var one *vocab.Command
	for i := c.list.Len() - 1; i >= 0; i-- {
		if one = c.list.At(i); one.Start <= raw {
			break
		}
	}
	var open []vocab.Command
	for one != nil && one.Start <= raw {
		if one.Running || one.End > raw {
			open = slices.Insert(open, 0, *one)
		}
		if one.Within == 0 {
			break
		}
		one = c.find(one.Within)
	}
	return open
}

// name gives a command without a line the one that e reports late.
func (c *commands) name(e shellint.CommandEvent) {
	if one := c.find(int(e.ID)); one != nil && one.Line == nil {
		one.Line = lineOf(e)
		if one != c.outer { // its line is not counted in lineBytes
			c.lineBytes += len(one.Text())
		}
	}
}

// copies returns the remembered commands, oldest first; the end of a running one is end.
func (c *commands) copies(end int64) []vocab.Command {
	out := make([]vocab.Command, 0, c.list.Len()+1)
	if c.outer != nil && c.outer.Running {
		out = append(out, *c.outer)
	}
	for i := range c.list.Len() {
		out = append(out, *c.list.At(i))
	}
	for i := range out {
		if out[i].Running {
			out[i].End = end
		}
	}
	return out
}

// commandList returns the commands still remembered, oldest first.
func (t *Terminal) commandList() []vocab.Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.commands.copies(t.log.End())
}

// putCommandsLocked records command boundaries.
func (t *Terminal) putCommandsLocked(events []shellint.CommandEvent, now time.Time) {
	if len(events) > 0 {
		t.keepLaterLocked()
	}
	for _, e := range events {
		switch e.Kind {
		case shellint.CommandOpened:
			c := vocab.Command{N: int(e.ID), Line: lineOf(e), Running: true, Started: now, Start: e.Off, Verified: e.Verified, Within: int(e.Within)}
			t.adoption.recallTimes(&c)
			t.putMarkLocked(output.Mark{Kind: output.MarkCommandExecuted, Off: e.Off, Command: c})
			t.placeLocked(c)
		case shellint.CommandClosed:
			open := t.commands.find(int(e.ID))
			if open == nil {
				continue // forgotten: more than maxCommands began since
			}
			c := *open
			c.Running, c.End = false, e.Off
			c.Took(max(now.Sub(c.Started), 0)) // a holder's exit time may be before Started
			if e.Exit.Known {
				c.Exit = new(int(e.Exit.Code))
			}
			t.adoption.recallTimes(&c)
			t.putMarkLocked(output.Mark{Kind: output.MarkCommandFinished, Off: e.Off, Command: c})
		case shellint.CommandNamed:
			t.commands.name(e)
		}
	}
}

// foreseeLocked has the checkout of the terminal's directory looked for, so that lists
// know it.
func (t *Terminal) foreseeLocked() {
	if find := t.pool.opts.Checkout; find != nil {
		find(t.display.cwd, time.Now(), func(vocab.Checkout) {})
	}
}

// placeLocked arranges that the checkout in which a command has begun is added to it.
func (t *Terminal) placeLocked(c vocab.Command) {
	if t.pool.opts.Checkout == nil || t.adoption.underWay() || c.Within > 0 { // a command within ssh has its directory elsewhere
		return
	}
	t.pool.opts.Checkout(t.display.cwd, c.Started, func(is vocab.Checkout) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one := t.commands.find(c.N); one != nil && one.Start == c.Start {
			one.Checkout = &is
			t.keepLaterLocked()
		}
	})
}

// announceAfter is how long a command without a known line is not announced: it may be
// just Enter on an empty line. Shells that report no lines write a start and a prompt for
// that, in one go.
const announceAfter = 20 * time.Millisecond

// doubtLocked arranges a call of announce after announceAfter, in place of one that is
// still due.
func (t *Terminal) doubtLocked() {
	if t.commands.doubt == nil {
		t.commands.doubt = time.AfterFunc(announceAfter, t.announce)
		return
	}
	t.commands.doubt.Reset(announceAfter)
}

// announce announces a command that is still open after announceAfter.
func (t *Terminal) announce() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending.exit != nil {
		return
	}
	t.putCommandsLocked(t.commands.tracker.Announce(), time.Now())
	t.wakeLocked()
}

// lineOf returns the command line as it is kept: valid UTF-8 of at most maxLine bytes, so
// that no encoding exceeds the hosts' bounds. It returns nil if the shell has not
// reported it.
func lineOf(e shellint.CommandEvent) *string {
	if e.Source == shellint.SourceNone {
		return nil
	}
	return new(clip.Text(strings.ToValidUTF8(e.Line, "\uFFFD"), maxLine))
}
