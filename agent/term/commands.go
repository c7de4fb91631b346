package term

import (
	"slices"
	"strings"
	"time"

	"tether/internal/clip"
	"tether/shellint"
)

// commands is the history of command lines, from a shell's marks. The pump adds to it, and so does announce. Guarded by the terminal's
// mutex.
type commands struct {
	tracker   shellint.Tracker
	detected  bool           // a mark that counts was seen
	outer     *Command       // was open when the list dropped it, with shorter ones within it; nil if there was none
	list      queue[Command] // the newest, by ascending number; the last one may run, and the one that it ran in
	lineBytes int            // sum of their lines
	doubt     *time.Timer    // runs announce; nil before the first doubt
}

// remember adds c to the list, whose lines may take as much as a log.
func (c *commands) remember(one Command, logLimit int) {
	c.list.push(one)
	c.lineBytes += len(one.Line)
	c.bound(logLimit)
}

// bound forgets the oldest commands beyond the bounds. The last one is kept.
func (c *commands) bound(logLimit int) {
	drop, lines := 0, min(maxLines, logLimit)
	for n := c.list.len(); n-drop > 1 && (n-drop > maxCommands || c.lineBytes > lines); drop++ {
		one := c.list.at(drop)
		c.lineBytes -= len(one.Line)
		if !one.Done {
			c.outer = new(*one)
		}
	}
	c.list.drop(drop)
}

// find returns a remembered command by its number, or nil; the pointer is valid until the next remember.
func (c *commands) find(n int) *Command {
	for i := c.list.len() - 1; i >= 0; i-- {
		if one := c.list.at(i); one.N == n {
			return one
		}
	}
	if c.outer != nil && c.outer.N == n {
		return c.outer
	}
	return nil
}

// running is a copy of the innermost command that is open at the raw offset, or nil.
func (c *commands) running(raw int64) *Command {
	if open := c.openAt(raw); len(open) > 0 {
		return &open[len(open)-1]
	}
	return nil
}

// openAt returns copies of the commands that are open at the raw offset: none, one, or one and another within it.
func (c *commands) openAt(raw int64) []Command {
	var one *Command
	for i := c.list.len() - 1; i >= 0; i-- {
		if one = c.list.at(i); one.Start <= raw {
			break
		}
	}
	var open []Command
	for one != nil && one.Start <= raw {
		if !one.Done || one.End > raw {
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
	if one := c.find(int(e.ID)); one != nil && !one.HasLine {
		one.Line, one.HasLine = lineOf(e), true
		if one != c.outer { // whose line is not counted
			c.lineBytes += len(one.Line)
		}
	}
}

// copies returns the remembered commands, oldest first; the end of a running one is end.
func (c *commands) copies(end int64) []Command {
	out := make([]Command, 0, c.list.len()+1)
	if c.outer != nil && !c.outer.Done {
		out = append(out, *c.outer)
	}
	for i := range c.list.len() {
		out = append(out, *c.list.at(i))
	}
	for i := range out {
		if !out[i].Done {
			out[i].End = end
		}
	}
	return out
}

// commandList returns the commands still remembered, oldest first.
func (t *Terminal) commandList() []Command {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.commands.copies(t.stream.log.End())
}

// putCommandsLocked records command boundaries.
func (t *Terminal) putCommandsLocked(events []shellint.CommandEvent, now time.Time) {
	if len(events) > 0 {
		t.keepLaterLocked()
	}
	for _, e := range events {
		switch e.Kind {
		case shellint.CommandOpened:
			c := Command{N: int(e.ID), Line: lineOf(e), HasLine: e.Source != shellint.SourceNone, Started: now, Start: e.Off, Verified: e.Verified, Within: int(e.Within)}
			t.adoption.recallTimes(&c)
			t.putMarkLocked(Mark{Kind: MarkCommandExecuted, Off: e.Off, Command: c})
		case shellint.CommandClosed:
			open := t.commands.find(int(e.ID))
			if open == nil {
				continue // forgotten: more than maxCommands began since
			}
			c := *open
			c.Done, c.End, c.Duration = true, e.Off, max(now.Sub(c.Started), 0) // a holder may say of the exit that it was before we read the beginning
			if e.Exit.Known {
				code := int(e.Exit.Code)
				c.Exit = &code
			}
			t.adoption.recallTimes(&c)
			t.putMarkLocked(Mark{Kind: MarkCommandFinished, Off: e.Off, Command: c})
		case shellint.CommandNamed:
			t.commands.name(e)
		}
	}
}

// announceAfter is how long a command whose line is not known may be nothing but Enter on an empty line, which shells without line reports
// write as a start and a prompt in one go.
const announceAfter = 20 * time.Millisecond

// doubtLocked has announce called after announceAfter; a doubt before this one is over.
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

// lineOf is the command line in the kept form: valid UTF-8 of at most maxLine bytes, so that no encoding exceeds the hosts' bounds.
func lineOf(e shellint.CommandEvent) string {
	return clip.Text(strings.ToValidUTF8(e.Line, "\uFFFD"), maxLine)
}
