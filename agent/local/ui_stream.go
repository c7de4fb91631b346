package local

import (
	"errors"
	"slices"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/agent/output"
	"tether/agent/term"
	"tether/vocab"
)

// stream is one terminal that a client is attached to. Only run uses it.
//
// The client gets the text as observers see it, without integration marks, terminal
// queries and clipboard access. So no user interface answers a child's query or changes
// the person's clipboard.
type stream struct {
	id       string
	terminal term.Handle
	leave    func() // ends the person's attachment; nil if there is none
	reader   *output.Reader
	sent     int64       // text offset after the output that was sent to the client
	acks     bool        // the client acknowledges output by pty:ack
	acked    int64       // text offset after the output that the client has acknowledged
	due      time.Time   // when more output may be sent, see bulk
	exit     *vocab.Exit // the exit, if it was read but not yet sent
}

// errStreamEnded is returned when the last message of a stream was sent, so that the
// stream is to be dropped.
var errStreamEnded = errors.New("the terminal has exited")

// attach starts a stream, or restarts it.
func (c *client) attach(r request) error {
	h, err := c.access.Terminal(term.ID(r.ID))
	if err != nil {
		return err
	}
	st, _ := c.stream(r.ID)
	fresh := st == nil
	if fresh {
		if len(c.streams) >= maxStreams {
			return &localapi.Error{Code: localapi.CodeLimit, Message: "attached to too many terminals", Hint: "detach from one"}
		}
		st = &stream{id: r.ID, terminal: h}
	}
	st.acks = r.Ack
	said, err := st.begin(c, r.Since)
	if err != nil {
		return err
	}
	if fresh {
		if c.access.Actor() == term.User {
			st.leave, _ = h.Attach() // fails if the person may not type here
		}
		c.streams = append(c.streams, st)
		c.events.attached(r.ID)
	}
	return c.send(appendAttached(c.buf.frame[:0], said))
}

func (c *client) detach(id string) {
	if _, i := c.stream(id); i >= 0 {
		c.drop(i)
	}
}

// stream returns the stream of a terminal and its index, or nil and -1 if there is none.
func (c *client) stream(id string) (*stream, int) {
	i := slices.IndexFunc(c.streams, func(st *stream) bool { return st.id == id })
	if i < 0 {
		return nil, i
	}
	return c.streams[i], i
}

// drop ends a stream.
func (c *client) drop(i int) {
	st := c.streams[i]
	st.close()
	c.streams = slices.Delete(c.streams, i, i+1)
	c.turns = 0
	c.events.detached()
}

func (st *stream) close() {
	st.reader.Close()
	if st.leave != nil {
		st.leave()
	}
}

// begin opens a new reader, and returns the history that the client is to be sent. A
// client that has all output before the offset since gets the output from there on, if it
// is still kept. A client without such an offset gets the newest output.
func (st *stream) begin(c *client, since *int64) (attached, error) {
	if since != nil {
		if said, ok, err := st.resume(c, *since); ok || err != nil {
			return said, err
		}
	}
	return st.history(c, st.terminal.Info().Bytes)
}

// resume opens a new reader at the text offset since, and returns the output from there
// on as history. ok is false if there is no such offset, its output is not kept any more,
// or there is too much of it for one message.
func (st *stream) resume(c *client, since int64) (said attached, ok bool, err error) {
	until := st.terminal.Info().Bytes
	if err := st.open(c, output.ReaderOptions{}); err != nil {
		return attached{}, false, err
	}
	if !st.reader.SeekText(since) {
		return attached{}, false, nil
	}
	first := sizeAt{since, st.reader.Size()}
	t := collect(st.reader, c.buf.text, until, historySize)
	c.buf.text, t.sizes = t.Data, append([]sizeAt{first}, t.sizes...)
	return st.said(t, false), !t.lagged && t.Off == since && len(t.sizes) <= maxSizes, nil
}

func (st *stream) open(c *client, o output.ReaderOptions) error {
	o.View, o.Wake = output.ViewText, c.wake
	rd, err := st.terminal.Reader(o)
	if err != nil {
		return err
	}
	if st.reader != nil {
		st.reader.Close()
	}
	st.reader = rd
	return nil
}

// said returns the content of the pty:attached for the text that was read, and records
// that the client has this text.
func (st *stream) said(t taken, truncated bool) attached {
	st.sent, st.acked, st.exit = t.end(), t.Off, t.exit
	said := attached{id: st.id, history: t.piece, size: st.terminal.Info().Size, truncated: truncated}
	if slices.ContainsFunc(t.sizes, func(s sizeAt) bool { return s.size != said.size }) {
		said.sizes = t.sizes
	}
	return said
}

// taken is the result of collect.
type taken struct {
	piece
	sizes  []sizeAt    // sizes that the terminal was given within the text
	lagged bool        // the reader lost its place; only the text after that is returned
	exit   *vocab.Exit // the terminal's exit, if it was reached
}

// collect reads the available text into buf. It stops at about the raw offset until, so
// that it ends although the child goes on printing, and after limit bytes, exceeding that
// by less than a chunk. Of the marks it returns only sizes and the exit.
func collect(rd *output.Reader, buf []byte, until int64, limit int) taken {
	t := taken{piece: piece{Data: buf[:0], Off: rd.Offset()}}
	for len(t.Data) < limit {
		n := len(t.Data)
		t.Data = slices.Grow(t.Data, chunk)
		ev, ok, err := rd.TryNext(t.Data[n : n+chunk])
		var lost *output.LaggedError
		switch {
		case errors.As(err, &lost):
			t = taken{piece: piece{Data: t.Data[:0], Off: lost.At}, lagged: true, sizes: []sizeAt{{lost.At, rd.Size()}}}
			continue
		case err != nil || !ok:
			return t
		case ev.Mark != nil && ev.Mark.Kind == output.MarkExited:
			t.exit = &ev.Mark.Exit
			return t
		case ev.Mark != nil && ev.Mark.Kind == output.MarkResized:
			t.sizes = append(t.sizes, sizeAt{t.end(), ev.Mark.Size})
		}
		t.Data = t.Data[:n+len(ev.Data)]
		if ev.Raw >= until && len(ev.Data) > 0 {
			return t
		}
	}
	return t
}

// step sends the next message of the terminal, if there is one.
func (st *stream) step(c *client) (worked bool, err error) {
	switch {
	case st.exit != nil:
		return true, st.end(c, *st.exit)
	case st.full(), time.Now().Before(st.due):
		return false, nil
	}
	c.buf.text = slices.Grow(c.buf.text[:0], chunk)
	ev, ok, err := st.reader.TryNext(c.buf.text[:chunk])
	frame := c.buf.frame[:0]
	var lagged *output.LaggedError
	switch {
	case errors.As(err, &lagged):
		return true, st.resync(c)
	case err != nil || !ok:
		return false, err
	case ev.Mark == nil:
		st.sent = ev.Off + int64(len(ev.Data))
		st.due = c.server.ui.bulk.reserve(len(ev.Data), time.Now())
		return true, c.send(appendOutput(frame, st.id, piece{ev.Data, ev.Off}))
	case ev.Mark.Kind == output.MarkResized:
		return true, c.send(appendResized(frame, st.id, ev.Mark.Size))
	case ev.Mark.Kind == output.MarkExited:
		return true, st.end(c, ev.Mark.Exit)
	}
	return true, nil
}

// end sends the exit and returns errStreamEnded.
func (st *stream) end(c *client, e vocab.Exit) error {
	if err := c.send(appendExit(c.buf.frame[:0], st.id, e)); err != nil {
		return err
	}
	return errStreamEnded
}

// resync continues with the newest output after the reader lost its place.
func (st *stream) resync(c *client) error {
	sent := st.sent
	said, err := st.begin(c, nil)
	if err != nil { // the client may not read the terminal any more
		if err := c.send(appendError(c.buf.frame[:0], st.id, errorFor(err))); err != nil {
			return err
		}
		return errStreamEnded
	}
	said.lost = max(said.history.Off-sent, 0)
	st.due = c.server.ui.bulk.reserve(len(said.history.Data), time.Now())
	return c.send(appendAttached(c.buf.frame[:0], said))
}

// acknowledge records the offset up to which the client has shown output.
func (st *stream) acknowledge(end int64) { st.acked = min(max(st.acked, end), st.sent) }

// full reports whether the client must acknowledge output before more is sent.
func (st *stream) full() bool { return st.acks && st.sent-st.acked >= ackWindow }

// arm makes the reader wake run at the next output, unless the client must acknowledge
// first. If the stream has to pause before it may send more, arm returns when the pause
// ends instead; else due is zero.
func (st *stream) arm(now time.Time) (due time.Time) {
	switch {
	case st.due.After(now):
		return st.due
	case !st.full():
		st.reader.Ready(1)
	}
	return time.Time{}
}

// bulkRate and bulkBurst bound the text that is sent to all user interfaces together, in
// bytes per second and in bytes at once. That is more than a user interface can show, and
// leaves processor time for echoes while a flood goes to many viewers. Messages with less
// than bulkLeast bytes never wait.
const (
	bulkRate  = 64 << 20
	bulkBurst = 4 << 20
	bulkLeast = 4 << 10
)

// bulk shares bulkRate among all streams of a Handler, in the order in which they send.
// The zero value is ready to use. It is safe for concurrent use.
type bulk struct {
	mu   sync.Mutex
	next time.Time // when the text that was sent so far is paid for at bulkRate; guarded by mu
}

// reserve records that n bytes are sent, and returns when their sender may send more; a
// zero time means at once.
func (b *bulk) reserve(n int, now time.Time) time.Time {
	if n < bulkLeast {
		return time.Time{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if earliest := now.Add(-bulkBurst * time.Second / bulkRate); b.next.Before(earliest) {
		b.next = earliest
	}
	b.next = b.next.Add(time.Duration(n) * time.Second / bulkRate)
	return b.next
}
