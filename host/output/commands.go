package output

import "tether/vocab"

// Running returns the line of the running command and the position at which it began; ok
// is false if no command runs.
func (l *Log) Running() (line string, began int64, ok bool) {
	c := l.content.running()
	if c == nil {
		return "", 0, false
	}
	at := l.content.end
	for i := len(l.content.parts) - 1; i >= 0; i-- {
		p := &l.content.parts[i]
		if at -= int64(p.size); p.command == c {
			break
		}
	}
	return c.line, at, true
}

// Commands returns the commands that are still recorded, oldest first.
func (l *Log) Commands() []vocab.Command {
	var all []vocab.Command
	at := l.content.oldest()
	for i := range l.content.parts {
		p := &l.content.parts[i]
		if p.command != nil {
			all = append(all, l.describe(p, at))
		}
		at += int64(p.size)
	}
	return all
}

// Command returns the newest command with that id, which its owner has chosen.
func (l *Log) Command(id string) (vocab.Command, bool) {
	at := l.content.end
	for i := len(l.content.parts) - 1; i >= 0; i-- {
		p := &l.content.parts[i]
		at -= int64(p.size)
		if p.command != nil && p.command.id == id {
			return l.describe(p, at), true
		}
	}
	return vocab.Command{}, false
}

// maxDuration is the longest duration of a command that agents are told, in milliseconds:
// owners may say anything.
const maxDuration = 1 << 52

// describe returns the command of a part whose text begins at a position.
func (l *Log) describe(p *part, at int64) vocab.Command {
	c := p.command
	out := vocab.Command{N: c.n, Line: new(c.line), Running: !c.complete, Verified: c.verified, Within: c.outer,
		Start: l.offsets.at(at) + c.ended, End: l.offsets.at(at+int64(p.size)) + c.within}
	if out.Running {
		out.End = l.EndOffset()
	}
	if c.exitCode != nil {
		out.Exit = new(int(*c.exitCode))
	}
	if c.duration != nil {
		out.DurationMs = new(min(*c.duration, maxDuration))
	}
	return out
}
