package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/agent/uiws"
	"tether/platform/pty"
	"tether/screen"
)

const (
	maxTail = 1 << 30 // bytes, as large as a log may be
)

// attach shows a terminal to one person and takes their input. It returns when the terminal has exited, the client has gone, or the server
// drains.
func (s *Server) attach(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	start, err := parseStart(r.URL.Query())
	if err != nil {
		return err
	}
	var first []byte
	drawn := r.URL.Query().Get("screen") == "1" && start.Tail > 0
	if drawn {
		var at int64
		if first, at, err = redraw(h, start.Tail, false); err != nil {
			return err
		}
		if first != nil {
			start.Tail, start.From = 0, at
		}
	}
	rd, err := h.Reader(start)
	if err != nil {
		return err
	}
	a := &attachment{terminal: h, access: s.access(r), reader: rd, server: s, hands: hands{server: s, request: r}, first: first, drawn: drawn}
	a.whole = r.URL.Query().Get("input") == "lines"
	defer func() { a.reader.Close() }()
	leave, err := h.Attach()
	if err != nil {
		return err
	}
	defer leave()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.attached.Done()
	if a.offsets = r.URL.Query().Get("offsets") == "1"; a.offsets {
		w.Header().Set(localapi.OffsetsHeader, "1")
	}
	a.lent = h.Info().LentTo // read before the client knows that it is attached, so that it gets all later changes
	if a.conn, err = uiws.Upgrade(w, r); err != nil {
		return nil // upgrade has answered
	}
	s.stirred()
	defer s.stirred()
	a.conn.SetReadLimit(localapi.MaxFrame)
	defer s.sizes.leave(h, a)
	a.run(r.Context())
	return nil
}

// parseStart parses where the client wants to begin: at an offset (from=OFFSET), with the last bytes (tail=BYTES), or now.
func parseStart(q url.Values) (term.ReaderOptions, error) {
	o := term.ReaderOptions{View: term.ViewScreen, Hold: true}
	from, err := number(q, "from", 1<<62)
	if err != nil {
		return o, err
	}
	tail, err := number(q, "tail", maxTail)
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
	server   *Server
	hands    hands    // input's
	offsets  bool     // messages to the client begin with the raw offset
	lent     []string // hosts to which the terminal is lent, as the client was told; owned by lendings
	first    []byte   // sent before the reader's next output; owned by output
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
	if !a.sendFirst(buf) {
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
		case len(ev.Data) > 0:
			data := ev.Data
			if a.offsets {
				binary.BigEndian.PutUint64(buf, uint64(ev.Raw))
				data = buf[:localapi.OffsetBytes+len(ev.Data)]
			}
			err = a.send(websocket.MessageBinary, data)
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

// lagged tells the client how much it has missed, and sends it the screen if it wants that.
func (a *attachment) lagged(lost int64, buf []byte) error {
	var at int64
	var rd *term.Reader
	if a.drawn {
		var err error
		if a.first, at, err = redraw(a.terminal, -1, true); err != nil {
			return err
		}
	}
	if a.first != nil {
		var err error
		if rd, err = a.terminal.Reader(term.ReaderOptions{View: term.ViewScreen, Hold: true, From: at}); err != nil {
			return err
		}
		a.reader.Close()
		a.reader = rd
	}
	if err := a.send(websocket.MessageText, localapi.Control{Type: localapi.ControlLagged, Lost: lost}.Encode()); err != nil {
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
	binary.BigEndian.PutUint64(buf, uint64(a.reader.Offset()))
	for rest := a.first; len(rest) > 0; {
		n := copy(buf[localapi.OffsetBytes:], rest)
		data := buf[:localapi.OffsetBytes+n]
		if !a.offsets {
			data = data[localapi.OffsetBytes:]
		}
		if a.send(websocket.MessageBinary, data) != nil {
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

// wipe resets and clears a used terminal: it ends an incomplete sequence, leaves the alternate screen, and resets modes, style, character
// sets and tab stops.
const wipe = "\x18\x1b[?1049l\x1b[!p\x1b[4;20l\x1b[?1;6;9;45;66;1000;1002;1003;1004;1006;1016;2004;2026l\x1b[?7;25h\x1b[0 q\x1b]8;;\x1b\\" +
	"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[?5W\x1b[m\x1b[H\x1b[2J"

// redraw returns bytes that clear a terminal and draw the screen, for a client that would begin with the last tail bytes, and the raw
// offset at which the client continues. It returns nil if the last tail bytes show the screen by themselves. A client that has lost output
// gets the screen in any case, if the screen is known and the terminal has shown something.
func redraw(h term.Handle, tail int64, lost bool) (first []byte, at int64, err error) {
	if h.IsMasked() {
		return nil, 0, nil // agents do not see screens
	}
	end := h.Info().Bytes
	some, err := h.Reader(term.ReaderOptions{View: term.ViewScreen, Tail: tail})
	if err != nil {
		return nil, 0, err
	}
	defer some.Close()
	all, err := h.Reader(term.ReaderOptions{View: term.ViewScreen})
	if err != nil {
		return nil, 0, err
	}
	defer all.Close()
	old, err := all.Oldest()
	from := some.Offset()
	if err != nil || from <= old.Raw && len(old.Replay) == 0 && !lost {
		return nil, 0, err
	}
	is := screen.NewState(int(old.Size.Cols), int(old.Size.Rows))
	is.Write(old.Replay)
	show(is, all, from)
	looks := screen.NewState(is.Size())
	at = show(is, all, end)
	show(looks, some, end)
	replay := is.Replay()
	switch {
	case replay == nil:
		return nil, 0, nil
	case lost:
		return append([]byte(wipe), replay...), max(at, old.Raw), nil
	case bytes.Equal(replay, looks.Replay()):
		return nil, 0, nil
	}
	return append([]byte("\x1b[m\x1b[H\x1b[2J"), replay...), at, nil
}

// show makes a screen process what a reader returns up to a raw offset, or a little more, and returns the raw offset where that ends.
func show(s *screen.Screen, rd *term.Reader, to int64) (at int64) {
	buf := make([]byte, 64<<10)
	for at < to {
		ev, ok, err := rd.TryNext(buf)
		if err != nil || !ok {
			break // the reader has lost its place, or nothing more can be read
		}
		if m := ev.Mark; m != nil && m.Kind == term.MarkResized {
			s.Resize(int(m.Size.Cols), int(m.Size.Rows))
		}
		s.Advance(ev.Data)
		at = ev.Raw
	}
	return at
}
