package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/pty"
)

const (
	maxTail = 1 << 30 // bytes, as large as a log may be
)

// attach shows a terminal to one person and takes their input. It returns when the terminal has exited, the client has gone, or the server
// drains.
func (s *Server) attach(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	q := paramsOf(r)
	start, err := parseStart(q)
	drawn, whole := q.Get("screen") == "1" && start.Tail > 0, q.Get("input") == "lines"
	seated, offsets := q.Get("terminal") != "0" && !h.IsMasked(), q.Get("offsets") == "1"
	if err = cmp.Or(err, q.unknown()); err != nil {
		return err
	}
	rd, err := h.Reader(start)
	if err != nil {
		return err
	}
	a := &attachment{terminal: h, access: s.access(r), reader: rd, server: s, hands: hands{server: s, request: r}, drawn: drawn, whole: whole, offsets: offsets}
	defer func() { a.reader.Close() }()
	leave, err := a.sit(seated, start)
	if err != nil {
		return err
	}
	defer leave()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.attached.Done()
	if a.offsets {
		w.Header().Set(localapi.OffsetsHeader, "1")
	}
	a.lent = h.Info().LentTo // read before the client knows that it is attached, so that it gets all later changes
	if a.conn, err = upgrade(w, r); err != nil {
		return nil // upgrade has answered
	}
	s.stirred()
	defer s.stirred()
	a.conn.SetReadLimit(localapi.MaxFrame)
	defer s.sizes.leave(h, a)
	a.run(r.Context())
	return nil
}

// sit counts the client as attached. A client with a terminal answers what the program
// asks from now on, and is not asked again what others have answered.
func (a *attachment) sit(terminal bool, start term.ReaderOptions) (leave func(), err error) {
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
	rd, err := a.terminal.Reader(term.ReaderOptions{View: term.ViewScreen, Hold: true, Linear: true, From: at})
	if err != nil {
		return err
	}
	a.reader.Close()
	a.reader = rd
	return nil
}

// parseStart parses where the client wants to begin: at an offset (from=OFFSET), with the last bytes (tail=BYTES), or now.
func parseStart(q params) (term.ReaderOptions, error) {
	o := term.ReaderOptions{View: term.ViewScreen, Hold: true, Linear: true}
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

// attachment is one client on one terminal. run's goroutine is the only one that writes; input's reads.
type attachment struct {
	conn     *websocket.Conn
	terminal term.Handle
	access   term.Access
	reader   *term.Reader // output's
	seat     *term.Seat   // input's; nil for a client without a terminal
	server   *Server
	hands    hands    // input's
	offsets  bool     // messages to the client begin with the raw offset
	lent     []string // hosts to which the terminal is lent, as the client was told; owned by lendings
	first    []byte   // sent before the reader's next output; owned by output
	earlier  *past    // earlier output that is to be sent; nil if there is none. Owned by output
	drawn    bool     // the client wants the screen drawn where it has missed output
	whole    bool     // the input is a script's: a line that the terminal would cut ends it
	line     int      // with whole: bytes typed since the last end of a line, -1 if no more is taken; owned by input
}

// run returns when the terminal has exited, the client has gone, the server drains, or the request's context ends, since its token was
// revoked.
func (a *attachment) run(request context.Context) {
	ctx, cancel := context.WithCancel(request)
	defer context.AfterFunc(a.server.draining, cancel)()
	var wg sync.WaitGroup
	beside := make(chan localapi.Control, 1) // messages from input and lendings; kept until output reads them
	wg.Go(func() {
		defer cancel()
		a.input(ctx, beside)
	})
	wg.Go(func() { a.lendings(ctx, beside) })
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { // a blocked write must not delay the end
		select {
		case <-finished:
		case <-time.After(closeMessageTimeout):
			a.conn.CloseNow()
		}
	})
	last, ok := a.output(ctx, beside)
	if request.Err() != nil {
		last, ok = localapi.Control{Type: localapi.ControlDropped, Message: context.Cause(request).Error()}, true
	}
	if ok {
		word, done := context.WithTimeout(context.Background(), closeMessageTimeout)
		_ = a.conn.Write(word, websocket.MessageText, last.Encode())
		done()
	}
	close(finished)
	stop()
	cancel()
	a.conn.CloseNow()
	wg.Wait()
}

// output sends the terminal's stream until its end and returns the close message for the client; ok is false if the client is gone.
func (a *attachment) output(ctx context.Context, beside <-chan localapi.Control) (last localapi.Control, ok bool) {
	buf := make([]byte, localapi.OffsetBytes+localapi.AttachChunk)
	if !a.sendFirst(buf) || a.pass(nil, a.reader.Offset(), buf) != nil {
		return localapi.Control{}, false
	}
	for {
		select {
		case c := <-beside: // checked for every event, because output may never pause
			if a.send(websocket.MessageText, c.Encode()) != nil {
				return localapi.Control{}, false
			}
		default:
		}
		ev, ready, err := a.reader.TryNext(buf[localapi.OffsetBytes:])
		if err == nil && !ready {
			if err = a.pass(nil, a.reader.Offset(), buf); err != nil {
				return localapi.Control{}, false
			}
			select {
			case <-a.reader.Ready(1):
			case c := <-beside:
				err = a.send(websocket.MessageText, c.Encode())
			case <-ctx.Done():
				return a.dropped()
			}
		}
		var lagged *term.LaggedError
		switch {
		case errors.As(err, &lagged):
			err = a.lagged(lagged.Lost, buf)
		case err != nil:
		case len(ev.Data) > 0 && a.earlier != nil:
			err = a.pass(ev.Data, ev.Raw, buf)
		case len(ev.Data) > 0:
			err = a.sendOutput(buf[:localapi.OffsetBytes+len(ev.Data)], ev.Raw)
		case ev.Mark != nil && ev.Mark.Kind == term.MarkExited:
			return localapi.Control{Type: localapi.ControlExit, Code: ev.Mark.Exit.Code, Signal: ev.Mark.Exit.Signal}, true
		case ev.Mark != nil && ev.Mark.Kind == term.MarkResized:
			size := ev.Mark.Size
			err = a.send(websocket.MessageText, localapi.Control{Type: localapi.ControlResized, Cols: size.Cols, Rows: size.Rows}.Encode())
		}
		if err != nil {
			return localapi.Control{}, false
		}
		if ctx.Err() != nil {
			return a.dropped()
		}
	}
}

// pass sends what the client gets of earlier output that ends at the raw offset to. It does nothing once all of it was sent.
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

// sendOutput sends output, which lies behind room for its offset in frame, and ends at the raw offset to.
func (a *attachment) sendOutput(frame []byte, to int64) error {
	binary.BigEndian.PutUint64(frame, uint64(to))
	if !a.offsets {
		frame = frame[localapi.OffsetBytes:]
	}
	return a.send(websocket.MessageBinary, frame)
}

// lagged tells the client how much it has missed, and sends it the screen if it wants that.
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
	if err := a.send(websocket.MessageText, localapi.Control{Type: localapi.ControlLagged, Lost: lost, Redrawn: a.first != nil}.Encode()); err != nil {
		return err
	}
	if !a.sendFirst(buf) {
		return errNotRead
	}
	return nil
}

// errNotRead is returned when a message could not be sent.
var errNotRead = errors.New("the client does not read what is sent")

// sendFirst sends the present screen. Its bytes do not count in offsets.
func (a *attachment) sendFirst(buf []byte) bool {
	for rest := a.first; len(rest) > 0; {
		n := copy(buf[localapi.OffsetBytes:], rest)
		if a.sendOutput(buf[:localapi.OffsetBytes+n], a.reader.Offset()) != nil {
			return false
		}
		rest = rest[n:]
	}
	a.first = nil
	return true
}

// dropped returns the message for a client that is disconnected because the daemon ends; ok is false if it is not.
func (a *attachment) dropped() (localapi.Control, bool) {
	if a.server.draining.Err() == nil {
		return localapi.Control{}, false
	}
	if a.server.keeping.Load() && a.terminal.Info().Held {
		return localapi.Control{Type: localapi.ControlDropped, Message: "another daemon takes over", Keep: true}, true
	}
	return localapi.Control{Type: localapi.ControlDropped, Message: "the daemon is shutting down"}, true
}

// send writes one message. A client that does not read for WriteTimeout is disconnected; until then its terminal waits or continues without
// it, see term.Reader. The write has no context that ends with the server, because that would close the connection before the close
// message; run handles the server's end.
func (a *attachment) send(kind websocket.MessageType, p []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), a.server.opts.WriteTimeout)
	defer cancel()
	return a.conn.Write(ctx, kind, p)
}

// input passes the client's input to the terminal until the client is gone. While the child does not read, input blocks, which delays only
// this client. It reads without a context, because the end of a context would close the connection before the close message; run closes it.
func (a *attachment) input(ctx context.Context, wrong chan<- localapi.Control) {
	for {
		kind, data, err := a.conn.Read(context.Background())
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			err = a.typed(ctx, data)
		} else {
			err = a.control(data)
		}
		if err == nil || errors.Is(err, term.ErrExited) {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		select {
		case wrong <- a.complaint(err):
		default: // one waiting complaint is enough
		}
	}
}

// complaint tells the client of an error. A script's input ends with it.
func (a *attachment) complaint(err error) localapi.Control {
	c := localapi.Control{Type: localapi.ControlError, Message: err.Error()}
	if a.whole {
		c.Error, a.line = errorFor(err), -1
	}
	return c
}

// typed passes input to the terminal. The policy judges an agent's input, as it does through MCP.
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

// passing returns the beginning of data before the first line that the terminal would cut, and an error if there is one. No further input is
// taken then.
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

// lendings tells the client who can watch whenever that changes, because the person who types should know.
func (a *attachment) lendings(ctx context.Context, beside chan<- localapi.Control) {
	for since := uint64(0); ; {
		var err error
		if since, err = a.access.Changed(ctx, since); err != nil {
			return
		}
		now := a.terminal.Info().LentTo
		if slices.Equal(a.lent, now) {
			continue
		}
		a.lent = now
		select {
		case beside <- localapi.Control{Type: localapi.ControlLent, Hosts: now}:
		case <-ctx.Done():
			return
		}
	}
}

func (a *attachment) control(data []byte) error {
	c, err := localapi.ParseControl(data)
	if err != nil || c.Type != localapi.ControlResize {
		return err
	}
	if err := term.Allow(a.access.Actor(), term.OpResize, a.terminal.Info()); err != nil {
		return err // its size does not count any more
	}
	return a.server.sizes.want(a.terminal, a, term.Size{Cols: c.Cols, Rows: c.Rows})
}
