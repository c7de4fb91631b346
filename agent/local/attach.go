package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/coder/websocket"

	"tether/agent/answers"
	"tether/agent/localapi"
	"tether/agent/output"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/pty"
)

const maxTail = 1 << 30 // bytes, as large as a log may be

// attachment makes a client the screen of one terminal: it gets the terminal's own bytes,
// and its messages are typed there. The client's run owns the fields for output, its read
// line; terminal, seat, whole and offsets are set once.
type attachment struct {
	*client
	terminal term.Handle
	reader   *output.Reader
	seat     *answers.Seat // nil for a client without a terminal
	offsets  bool          // messages to the client begin with the raw offset
	lent     []string      // hosts to which the terminal is lent, as the client was told
	first    []byte        // sent before the reader's next output
	earlier  *past         // earlier output that is to be sent; nil if there is none
	drawn    bool          // the client wants the screen drawn where it has missed output
	whole    bool          // the input is a script's: a line that the terminal would cut ends it
	told     [2]bool       // that an adopted pane takes no keys, and no size
	line     int           // with whole: bytes typed since the last end of a line, -1 if no more is taken
}

// attachTo makes the client a screen of h, as the parameters say. leave ends that.
func (c *client) attachTo(h term.Handle, q params) (leave func(), err error) {
	start, err := parseStart(q)
	a := &attachment{client: c, terminal: h, drawn: q.Get("screen") == "1" && start.Tail > 0, whole: q.Get("input") == "lines", offsets: q.Get("offsets") == "1"}
	terminal := q.Get("terminal") != "0"
	if err = cmp.Or(err, q.unknown()); err != nil {
		return nil, err
	}
	start.Wake = c.wake
	if a.reader, err = h.Reader(start); err != nil {
		return nil, err
	}
	stands, err := a.sit(terminal && !h.IsMasked(), start)
	if err != nil {
		a.reader.Close()
		return nil, err
	}
	a.lent = h.Info().LentTo // read before the client knows that it is attached, so that it gets all later changes
	c.screen = a
	return func() {
		c.server.sizes.leave(h, a)
		stands()
		a.reader.Close()
	}, nil
}

// sit counts the client as attached. A client with a terminal answers what the program
// asks from now on, and is not asked again what others have answered.
func (a *attachment) sit(terminal bool, start output.ReaderOptions) (leave func(), err error) {
	if !terminal {
		return a.terminal.Attach()
	}
	if a.seat, err = a.terminal.Sit(); err != nil {
		return nil, err
	}
	dealt := a.seat.Dealt()
	switch {
	case start.Tail > 0:
		err = a.lookBack()
	case start.Tail == 0 && dealt > a.reader.Offset():
		a.earlier = &past{live: dealt, end: dealt, safe: newSafe()}
	}
	if err != nil {
		a.seat.Leave()
		return nil, err
	}
	return a.seat.Leave, nil
}

// lookBack decides what the client is shown of the output from the reader's offset on.
func (a *attachment) lookBack() (err error) {
	from := a.reader.Offset()
	if a.earlier, err = pastFrom(a.terminal, from, a.drawn); err != nil || a.earlier.from == from {
		return err
	}
	a.first = a.earlier.first
	return a.readFrom(a.earlier.from)
}

// readFrom makes the reader continue at a raw offset.
func (a *attachment) readFrom(at int64) error {
	rd, err := a.terminal.Reader(output.ReaderOptions{View: output.ViewScreen, Hold: true, Linear: true, From: at, Wake: a.wake})
	if err != nil {
		return err
	}
	a.reader.Close()
	a.reader = rd
	return nil
}

// parseStart parses where the client wants to begin: at an offset (from=OFFSET), with the
// last bytes (tail=BYTES), or now.
func parseStart(q params) (output.ReaderOptions, error) {
	o := output.ReaderOptions{View: output.ViewScreen, Hold: true, Linear: true}
	from, err := q.number("from", 1<<62)
	if err != nil {
		return o, err
	}
	tail, err := q.number("tail", maxTail)
	o.From, o.Tail = from, tail
	if tail == 0 && !q.Has("from") {
		o.Tail = -1
	}
	return o, err
}

// step sends the next message. It returns errStreamEnded after the last one.
func (a *attachment) step() (worked bool, err error) {
	c := a.client
	c.buf.text = slices.Grow(c.buf.text[:0], localapi.OffsetBytes+localapi.AttachChunk)
	buf := c.buf.text[:localapi.OffsetBytes+localapi.AttachChunk]
	if c.changed.Swap(false) {
		if now := a.terminal.Info().LentTo; !slices.Equal(a.lent, now) { // the person who types should know
			a.lent = now
			return true, a.say(localapi.Control{Type: localapi.ControlLent, Hosts: now})
		}
	}
	if a.first != nil || a.earlier != nil {
		if err := cmp.Or(a.sendFirst(buf), a.pass(nil, a.reader.Offset(), buf)); err != nil {
			return false, err
		}
	}
	ev, ready, err := a.reader.TryNext(buf[localapi.OffsetBytes:])
	var lagged *output.LaggedError
	switch {
	case errors.As(err, &lagged):
		return true, a.lagged(lagged.Lost, buf)
	case err != nil || !ready:
		return false, err
	case len(ev.Data) > 0 && a.earlier != nil:
		return true, a.pass(ev.Data, ev.Raw, buf)
	case len(ev.Data) > 0:
		return true, a.sendOutput(buf[:localapi.OffsetBytes+len(ev.Data)], ev.Raw)
	case ev.Mark != nil && ev.Mark.Kind == output.MarkExited:
		return true, cmp.Or(a.say(localapi.Control{Type: localapi.ControlExit, Code: ev.Mark.Exit.Code, Signal: ev.Mark.Exit.Signal}), errStreamEnded)
	case ev.Mark != nil && ev.Mark.Kind == output.MarkResized:
		return true, a.say(localapi.Control{Type: localapi.ControlResized, Cols: ev.Mark.Size.Cols, Rows: ev.Mark.Size.Rows})
	}
	return true, nil
}

// say sends a message that is not output.
func (a *attachment) say(c localapi.Control) error { return a.write(websocket.MessageText, c.Encode()) }

// pass sends what the client gets of earlier output that ends at the raw offset to. It
// does nothing once all of it was sent.
func (a *attachment) pass(data []byte, to int64, buf []byte) error {
	if a.earlier == nil {
		return nil
	}
	out, over := a.earlier.pass(nil, data, to)
	if over {
		a.earlier = nil
	}
	for len(out) > 0 {
		n := copy(buf[localapi.OffsetBytes:], out)
		if err := a.sendOutput(buf[:localapi.OffsetBytes+n], to); err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

// sendOutput sends output, which lies behind room for its offset in frame, and ends at
// the raw offset to.
func (a *attachment) sendOutput(frame []byte, to int64) error {
	binary.BigEndian.PutUint64(frame, uint64(to))
	if !a.offsets {
		frame = frame[localapi.OffsetBytes:]
	}
	return a.write(websocket.MessageBinary, frame)
}

// lagged tells the client how much it has missed, and sends it the screen if it wants
// that.
func (a *attachment) lagged(lost int64, buf []byte) error {
	var at int64
	if a.drawn {
		var err error
		if a.first, at, err = redraw(a.terminal); err != nil {
			return err
		}
	}
	if a.first != nil {
		a.earlier = nil
		if err := a.readFrom(at); err != nil {
			return err
		}
	}
	if err := a.say(localapi.Control{Type: localapi.ControlLagged, Lost: lost, Redrawn: a.first != nil}); err != nil {
		return err
	}
	return a.sendFirst(buf)
}

// sendFirst sends the present screen. Its bytes do not count in offsets.
func (a *attachment) sendFirst(buf []byte) error {
	for rest := a.first; len(rest) > 0; {
		n := copy(buf[localapi.OffsetBytes:], rest)
		if err := a.sendOutput(buf[:localapi.OffsetBytes+n], a.reader.Offset()); err != nil {
			return err
		}
		rest = rest[n:]
	}
	a.first = nil
	return nil
}

// dropped tells the client that it is disconnected because the daemon ends, or its token
// was revoked.
func (a *attachment) dropped(request context.Context) {
	c := localapi.Control{Type: localapi.ControlDropped}
	switch {
	case request.Err() != nil:
		c.Message = context.Cause(request).Error()
	case a.server.draining.Err() == nil:
		return
	case a.server.keeping.Load() && a.terminal.Info().Outlives:
		c.Message, c.Keep = "another daemon takes over", true
	default:
		c.Message = "the daemon is shutting down"
	}
	word, done := context.WithTimeout(context.Background(), closeTimeout)
	defer done()
	_ = a.conn.Write(word, websocket.MessageText, c.Encode())
}

// accept carries out a message of the client. An error goes to run, which answers it with
// complain.
func (a *attachment) accept(ctx context.Context, kind websocket.MessageType, data []byte) (left ask) {
	var err error
	if kind == websocket.MessageBinary {
		err = a.typed(ctx, data)
	} else {
		err = a.control(data)
	}
	if errors.Is(err, term.ErrExited) {
		err = nil
	}
	if no, ok := errors.AsType[*term.AdoptedError](err); ok && !a.whole { // a window sends its size by itself
		sizes := no.Op == term.OpResize
		told := &a.told[0]
		if sizes {
			told = &a.told[1]
		}
		if *told {
			err = nil
		}
		*told = true
	}
	if err != nil && a.whole { // a script's input ends with it
		a.line = -1
	}
	return ask{err: err}
}

// complain tells the client of an error in what it has sent.
func (a *attachment) complain(err error) error {
	c := localapi.Control{Type: localapi.ControlError, Message: err.Error()}
	if a.whole {
		c.Error = errorFor(err)
	}
	return a.say(c)
}

// typed passes input to the terminal. The policy judges an agent's input, as it does
// through MCP.
func (a *attachment) typed(ctx context.Context, data []byte) error {
	if a.line < 0 {
		return nil
	}
	if err := a.hands.mayType(a.terminal.Info()); err != nil {
		return err
	}
	if a.seat != nil {
		if data = a.seat.Typed(data); len(data) == 0 {
			return nil
		}
	}
	var long error
	if a.whole {
		data, long = a.passing(data)
	}
	judge := agentTerminals{server: a.server, access: a.access, door: policy.DoorCLI}
	if err := judge.typeInto(ctx, a.terminal, data); err != nil {
		return err
	}
	return long
}

// passing returns the beginning of data before the first line that the terminal would
// cut, and an error if there is one. No further input is taken then.
func (a *attachment) passing(data []byte) ([]byte, error) {
	before, not := 0, "that line and the rest were"
	if a.line > 0 {
		not = "the rest was"
	}
	for i, b := range data {
		if b == '\n' || b == '\r' || b == 4 { // Enter and ^D pass the line on
			a.line, before, not = 0, i+1, "that line and the rest were"
			continue
		}
		if a.line++; a.line == pty.MaxLine+1 && a.terminal.TakesLines() {
			a.line = -1
			return data[:before], &localapi.Error{Code: localapi.CodeTooLarge, Message: fmt.Sprintf("a line of the input is longer than %d bytes, and this terminal would cut it; %s not typed", pty.MaxLine, not),
				Hint: "give a command its input when it starts: tether run -- CMD <FILE"}
		}
	}
	return data, nil
}

func (a *attachment) control(data []byte) error {
	c, err := localapi.ParseControl(data)
	if err == nil && c.Type == localapi.ControlHangUp {
		return a.hangUp()
	}
	if err != nil || c.Type != localapi.ControlResize {
		return err
	}
	if err := term.Allow(a.access.Actor(), term.OpResize, a.terminal.Info()); err != nil {
		return err // its size does not count any more
	}
	return a.server.sizes.want(a.terminal, a, term.Size{Cols: c.Cols, Rows: c.Rows})
}

// hangUp tells the terminal's program that its window is gone. Where that cannot be said,
// it ends the terminal.
func (a *attachment) hangUp() error {
	err := a.terminal.Signal(pty.HangUp)
	if err == nil || errors.Is(err, term.ErrExited) {
		return nil
	}
	if err := term.Allow(a.access.Actor(), term.OpKill, a.terminal.Info()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	return a.terminal.Kill(ctx)
}
