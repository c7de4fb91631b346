package view

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tether/ahp"
	"tether/cmd/tether/internal/display"
	"tether/screen"
)

// Stream shows the output of one terminal. To a file or pipe, it writes the output
// unchanged. At a person's terminal, it adds lines where commands begin and end, and
// removes sequences that would act on that terminal, see Safe.
type Stream struct {
	out      io.Writer // for messages
	text     io.Writer // for the output
	isTTY    bool
	coloured bool

	trail   trail
	started bool         // something was shown
	joining bool         // the next output may repeat shown output
	midLine bool         // the last shown byte did not end a line
	modes   screen.Modes // of the person's terminal
	before  *ahp.Screen  // the screen at an offset of the next output; nil: blank or unknown
}

// NewStream returns a view that writes to out. isTTY says that out is a terminal,
// coloured that messages may have colours.
func NewStream(out io.Writer, isTTY, coloured bool) *Stream {
	v := &Stream{out: out, text: out, isTTY: isTTY, coloured: coloured}
	if isTTY {
		v.text = NewSafe(io.MultiWriter(out, &v.modes))
	}
	return v
}

// Resync implements View.
func (v *Stream) Resync(s ahp.TerminalState) error {
	var text strings.Builder
	for _, part := range s.Content {
		text.WriteString(part.Text())
	}
	v.joining, v.before = v.started, s.Meta.Screen
	return v.Data([]byte(text.String()))
}

// Data implements View.
func (v *Stream) Data(p []byte) error {
	before, all := v.before, len(p)
	joined := false
	if v.joining && len(p) > 0 {
		v.joining = false
		if p, joined = v.trail.join(p); !joined {
			if err := v.faint("[output may be repeated or missing here]"); err != nil {
				return err
			}
		}
	}
	v.before = nil
	if v.isTTY && before != nil {
		n := int(before.After) - (all - len(p)) // number of bytes of p before the screen's offset
		if n >= 0 && n <= len(p) && !(joined && before.After == 0) {
			if err := errors.Join(v.Data(p[:n]), v.draw(before.Data)); err != nil {
				return err
			}
			p = p[n:]
		}
	}
	if len(p) == 0 {
		return nil
	}
	v.started = true
	v.trail.add(p)
	v.midLine = p[len(p)-1] != '\n'
	_, err := v.text.Write(p)
	return err
}

// draw draws an earlier screen on the person's terminal. data is not output of the
// terminal, so it is not remembered as shown.
func (v *Stream) draw(data string) error {
	if data == "" {
		return nil
	}
	_, err := io.WriteString(v.text, string(v.modes.Restore())+"\x1b[r\x1b[H\x1b[2J"+data)
	return err
}

// Action implements View.
func (v *Stream) Action(a ahp.Action) error {
	switch a := a.(type) {
	case ahp.TerminalCleared:
		v.joining = true // a host clears and repeats the output to resynchronize
	case ahp.TerminalCommandExecuted:
		return v.boundary("── " + display.Printable(a.CommandLine, 200))
	case ahp.TerminalCommandFinished:
		return v.boundary(finishedText(a))
	}
	return nil
}

// maxShownMs is the longest duration of a command that is shown as it is, in
// milliseconds: a hundred years.
const maxShownMs = 100 * 365.25 * 24 * 3600 * 1000

// finishedText says how a command ended.
func finishedText(a ahp.TerminalCommandFinished) string {
	text := "── done"
	if a.ExitCode != nil {
		text = fmt.Sprintf("── exit %d", *a.ExitCode)
	}
	if a.DurationMs != nil {
		text += fmt.Sprintf(" after %v", (time.Duration(min(*a.DurationMs, maxShownMs)) * time.Millisecond).Round(time.Millisecond))
	}
	return text
}

// boundary shows where a command begins or ends. It shows nothing in a file or pipe.
func (v *Stream) boundary(text string) error {
	if !v.isTTY {
		return nil
	}
	return v.faint(text)
}

// faint writes a message on a line of its own, faint if there are colours.
func (v *Stream) faint(text string) error {
	if v.midLine {
		text = "\r\n" + text
	}
	v.midLine = false
	if v.coloured {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	_, err := fmt.Fprint(v.out, text, "\r\n")
	return err
}

// Close restores the person's terminal and ends the last line. It does not close the
// writer.
func (v *Stream) Close() error {
	if !v.isTTY {
		return nil
	}
	end := v.modes.Restore()
	if v.midLine {
		end = append(end, "\r\n"...)
	}
	v.midLine = false
	_, err := v.out.Write(end)
	return err
}

// trailBytes is the length of the remembered output, in bytes. It is long enough to occur
// only once in later output, except in output that repeats itself, in which the place
// does not matter.
const trailBytes = 4 << 10

// trail remembers the end of the shown output.
type trail struct{ last []byte }

func (t *trail) add(p []byte) {
	if len(p) >= trailBytes {
		t.last = append(t.last[:0], p[len(p)-trailBytes:]...)
		return
	}
	if over := len(t.last) + len(p) - trailBytes; over > 0 {
		t.last = t.last[:copy(t.last, t.last[over:])]
	}
	t.last = append(t.last, p...)
}

// join returns the part of p after the shown output. p may begin at any earlier offset.
// If p does not contain the end of the shown output, joined is false, and rest is p.
func (t *trail) join(p []byte) (rest []byte, joined bool) {
	if len(t.last) == 0 {
		return p, true
	}
	if i := bytes.LastIndex(p, t.last); i >= 0 {
		return p[i+len(t.last):], true
	}
	// The host may have kept less output than the trail remembers.
	for n := min(len(p), len(t.last)-1); n >= leastOverlap; n-- {
		if bytes.HasSuffix(t.last, p[:n]) {
			return p[n:], true
		}
	}
	return p, false
}

// leastOverlap is the shortest piece, in bytes, that counts as a repetition.
const leastOverlap = 16
