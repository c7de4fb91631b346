package terminals

import (
	"tether/ahp"
	"tether/host/channel"
	"tether/host/output"
)

const envelopeRoom = 160 // bytes; terminal/data's envelope besides its text and its channel

// The versions in whose forms the host encodes: terminals have a lifecycle in the newest
// one, only an exit code in the oldest.
var newestVersion, oldestVersion = ahp.Versions()[0], ahp.Versions()[len(ahp.Versions())-1]

// dataText returns the text between the quotes, as a part of msg, of a terminal/data
// notification that ends with quoted.
func dataText(msg, quoted []byte) []byte {
	end := len(msg) - len(`"}}}`)
	return msg[end-(len(quoted)-2) : end : end]
}

// Place appends text of the owner's at an offset, which c has sent. after is the
// screen behind it, nil if the owner did not send one.
func (t *Terminal) Place(c *Link, off int64, text output.Text, after *output.Drawn, by *Sender) {
	by.t, text.By = t, by
	t.placed(t.Out.Place(off, text, after))
	t.Bind(c)
	if t.Creator.Resume {
		t.Channel.Ack(t.Out.Applied(), &by.Wakes)
	}
}

// placed is called after the owner's text was appended; it began at an offset and a
// position. more says that there was text that the host did not have.
func (t *Terminal) placed(began, pos int64, more bool) {
	if more && t.audience.Pending {
		t.passed(began, pos)
	}
	t.Added()
}

// Added is called after something was added to the terminal's output or channel.
func (t *Terminal) Added() {
	t.book.Record(t)
	t.Moved.Raise()
}

// settleSoon makes the terminal's screen process dropped text, on a goroutine of its
// own. Whoever appends output does that itself, and waits.
func (t *Terminal) settleSoon() {
	if b := t.book; t.Out.Pending() && !b.closed {
		b.opts.Go(t.Settle)
	}
}

// Settle makes the terminal's screen process dropped text; t may be nil. It is called
// without the host's lock.
func (t *Terminal) Settle() {
	if t == nil {
		return
	}
	t.Out.Settle(t.book.mu, func() { t.book.Record(t) })
}

// emitter passes on what is appended to a terminal's output. It implements
// output.Emitter; its methods need the host's lock.
type emitter struct{ t *Terminal }

// Text implements output.Emitter.
func (m emitter) Text(quoted []byte, at int64) (kept []byte) {
	by := NewSender(m.t.URI, quoted)
	by.t = m.t
	return by.Text(quoted, at)
}

// Sender passes on one piece of a terminal's text. It implements output.Sender.
type Sender struct {
	t     *Terminal
	room  []byte        // for the message; empty
	Wakes channel.Wakes // of the goroutine that appends the text
}

// NewSender returns the sender of text for a terminal. For long text, append allocates
// the message; make would also clear the memory.
func NewSender(uri string, quoted []byte) *Sender {
	n := len(uri) + envelopeRoom
	if len(quoted) < output.ShareBytes {
		n += len(quoted)
	}
	return &Sender{room: make([]byte, 0, n)}
}

// Text implements output.Sender. The text is not sent back to the machine that has sent
// it.
func (s *Sender) Text(quoted []byte, at int64) (kept []byte) {
	t := s.t
	e := channel.Entry{At: at}
	if t.Remote() {
		e.From = t.Creator.number
	}
	e.Seq = t.book.envelopes.Next()
	e.Msg = ahp.AppendData(s.room, t.URI, e.Seq, nil, quoted)
	t.Channel.Add(e, &s.Wakes)
	t.book.notePrinted(t, quoted)
	return dataText(e.Msg, quoted)
}

// Action implements output.Emitter.
func (m emitter) Action(a ahp.Action, origin *ahp.Origin, at int64) {
	t := m.t
	e := channel.Entry{Piece: t.book.envelopes.Piece(t.URI, a, origin), At: at}
	if x, ok := a.(ahp.TerminalExited); ok && x.ExitCode == nil {
		x.ExitCode = &NoCode
		e.Old = ahp.AppendEnvelope(nil, t.URI, e.Seq, origin, "", ahp.AppendAction(nil, x))
	}
	t.Channel.Add(e, nil)
}

// Note implements output.Emitter. What shows earlier output does not concern the machine.
func (m emitter) Note(action []byte, at int64, past bool) {
	t := m.t
	e := channel.Entry{At: at}
	if past {
		e.From, e.Past = t.Creator.number, t.Out.Base()+1
	}
	e.Seq = t.book.envelopes.Next()
	e.Msg = ahp.AppendEnvelope(nil, t.URI, e.Seq, nil, "", action)
	t.Channel.Add(e, nil)
}

// Printable returns a without control characters in the texts that lists show.
func Printable(a ahp.Action) ahp.Action {
	if t, ok := a.(ahp.TerminalTitleChanged); ok {
		t.Title = ahp.CleanTitle(t.Title)
		return t
	}
	return a
}
