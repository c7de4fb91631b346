package output

import (
	"slices"
	"strings"
	"time"

	"tether/internal/clip"
	"tether/record"
	"tether/shellint"
	"tether/vocab"
)

// history is that of command lines, from a shell's marks.
type history struct {
	tracker   shellint.Tracker
	detected  bool                        // a mark that counts was seen
	outer     *vocab.Command              // a command that was dropped from list while it was open, because of commands within it; nil if there is none
	list      record.Queue[vocab.Command] // the newest, by ascending number; only the last one, and the one in which it runs, may still be open
	lineBytes int                         // sum of the lengths of their lines
	doubt     *time.Timer                 // runs announce; nil before the first doubt
}

// remember adds c to the list, whose lines may take as much as a log.
func (c *history) remember(one vocab.Command, logLimit int) {
	c.list.Push(one)
	c.lineBytes += len(one.Text())
	c.bound(logLimit)
}

// bound drops the oldest commands beyond the bounds, but never the last one.
func (c *history) bound(logLimit int) {
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
func (c *history) find(n int) *vocab.Command {
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

// openAt returns copies of the commands that are open at the raw offset: none, one, or an
// outer one and one within it.
func (c *history) openAt(raw int64) []vocab.Command {
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
func (c *history) name(e shellint.CommandEvent) {
	if one := c.find(int(e.ID)); one != nil && one.Line == nil {
		one.Line = lineOf(e)
		if one != c.outer { // its line is not counted in lineBytes
			c.lineBytes += len(one.Text())
		}
	}
}

// forget drops the commands that had ended before a raw offset.
func (c *history) forget(raw int64, logLimit int) {
	all := c.list
	c.list, c.lineBytes = record.Queue[vocab.Command]{}, 0
	for i := range all.Len() {
		if one := all.At(i); one.Running || one.End > raw {
			c.remember(*one, logLimit)
		}
	}
}

// copies returns the remembered commands, oldest first; the end of a running one is end.
func (c *history) copies(end int64) []vocab.Command {
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

// Commands returns the commands still remembered, oldest first. A running one has the
// log's end as its end.
func (l *Log) Commands() []vocab.Command { return l.history.copies(l.log.End()) }

// Newest returns the newest commands, at most so many, oldest first.
func (l *Log) Newest(most int) (all []vocab.Command) {
	for i := max(0, l.history.list.Len()-most); i < l.history.list.Len(); i++ {
		all = append(all, *l.history.list.At(i))
	}
	return all
}

// OpenAt returns copies of the commands that run at a raw offset: none, one, or an outer
// one and one within it.
func (l *Log) OpenAt(raw int64) []vocab.Command { return l.history.openAt(raw) }

// Running returns a copy of the innermost command that runs now, or nil.
func (l *Log) Running() *vocab.Command {
	if open := l.history.openAt(l.log.End()); len(open) > 0 {
		return &open[len(open)-1]
	}
	return nil
}

// Detected reports whether a mark that counts was seen, so that commands are known.
func (l *Log) Detected() bool { return l.history.detected }

// Typed tells the log of input, from which it may guess that a command begins.
func (l *Log) Typed(p []byte) { l.history.tracker.Input(p) }

// SetCheckout adds the checkout in which a command has begun, if that is still
// remembered.
func (l *Log) SetCheckout(began vocab.Command, is vocab.Checkout) {
	if one := l.history.find(began.N); one != nil && one.Start == began.Start {
		one.Checkout = &is
		l.owner.Commands()
	}
}

// markCommands records command boundaries.
func (l *Log) markCommands(events []shellint.CommandEvent, now time.Time) {
	if len(events) > 0 {
		l.owner.Commands()
	}
	for _, e := range events {
		switch e.Kind {
		case shellint.CommandOpened:
			c := vocab.Command{N: int(e.ID), Line: lineOf(e), Running: true, Started: now, Start: e.Off, Verified: e.Verified, Within: int(e.Within)}
			l.restored.recallTimes(&c)
			l.mark(Mark{Kind: MarkCommandExecuted, Off: e.Off, Command: c})
		case shellint.CommandClosed:
			open := l.history.find(int(e.ID))
			if open == nil {
				continue // forgotten: more than maxCommands began since
			}
			c := *open
			c.Running, c.End = false, e.Off
			c.Took(max(now.Sub(c.Started), 0)) // a holder's exit time may be before Started
			if e.Exit.Known {
				c.Exit = new(int(e.Exit.Code))
			}
			l.restored.recallTimes(&c)
			l.mark(Mark{Kind: MarkCommandFinished, Off: e.Off, Command: c})
		case shellint.CommandNamed:
			l.history.name(e)
		}
	}
}

// announceAfter is how long a command without a known line is not announced: it may be
// just Enter on an empty line. Shells that report no lines write a start and a prompt for
// that, in one go.
const announceAfter = 20 * time.Millisecond

// announceLater arranges a call of announce after announceAfter, in place of one that is
// still due.
func (l *Log) announceLater() {
	if l.history.doubt == nil {
		l.history.doubt = time.AfterFunc(announceAfter, l.announce)
		return
	}
	l.history.doubt.Reset(announceAfter)
}

// announce announces a command that is still open after announceAfter.
func (l *Log) announce() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.exited {
		return
	}
	l.markCommands(l.history.tracker.Announce(), time.Now())
	l.wake()
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
