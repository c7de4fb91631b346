package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tether/agent/localapi"
	"tether/agent/output"
	"tether/agent/term"
	"tether/agenttools"
	"tether/internal/clip"
)

const (
	maxLines = 1 << 20 // of one read; most logs have fewer
	// lineGuess is the assumed length of a line, in bytes, at the start of the search for
	// the last lines.
	lineGuess = 128
)

// readQuery is the query of an output request.
type readQuery struct {
	view    output.View
	lines   int // how many of the last lines; 0 means all that is kept
	command int // only the output of this command; 0 means of all
	follow  bool
	offsets bool  // with follow: in pieces with offsets
	marks   bool  // with offsets: sizes, losses and the exit, too
	leased  bool  // with marks: the terminal lives as long as it is followed
	from    int64 // if not 0, the raw offset at which to begin instead
}

var views = map[string]output.View{"": output.ViewText, "text": output.ViewText, "screen": output.ViewScreen, "raw": output.ViewRaw}

func parseRead(q params) (readQuery, error) {
	view, ok := views[q.Get("view")]
	if !ok {
		return readQuery{}, q.bad("view", "text, screen or raw")
	}
	lines, err := q.number("lines", maxLines)
	if err != nil {
		return readQuery{}, err
	}
	command, err := q.number("command", math.MaxInt32)
	if err != nil {
		return readQuery{}, err
	}
	from, err := q.number("from", 1<<62)
	o := readQuery{view: view, lines: int(lines), command: int(command), from: from, follow: q.Get("follow") == "1"}
	offsets, marks, leased := q.Get("offsets") == "1", q.Get("marks") == "1", q.Get("lease") == "1"
	o.offsets = o.follow && offsets
	o.marks = o.offsets && marks
	o.leased = o.marks && leased
	return o, cmp.Or(err, q.unknown())
}

// output answers with the terminal's output, as bytes. A gap is a separate line.
func (s *Server) output(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	q, err := parseRead(paramsOf(r))
	if err != nil {
		return err
	}
	end := h.Info().Bytes
	rd, head, err := open(h, q)
	if err != nil {
		return err
	}
	defer rd.Close()
	if q.leased {
		leave, err := s.leases.take(ActorFrom(r.Context()), h)
		if err != nil {
			return err
		}
		defer leave()
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()

	w.Header().Set("Content-Type", "application/octet-stream")
	if q.follow {
		w.Header().Add("Trailer", localapi.DroppedTrailer)
	}
	if h.IsMasked() {
		w.Header().Add("Trailer", localapi.MaskedTrailer)
	}
	if q.offsets {
		w.Header().Set(localapi.OffsetsHeader, "1")
	}
	out := &pieces{deadlined: deadlined{w: w, control: http.NewResponseController(w), timeout: s.opts.WriteTimeout}, offsets: q.offsets}
	_, err = out.Write(nil) // the answer's head, also where nothing was printed yet
	if err == nil {
		err = out.send(head)
	}
	if err == nil {
		s.copyOutput(ctx, out, rd, q, end)
	}
	if h.IsMasked() {
		w.Header().Set(localapi.MaskedTrailer, strconv.Itoa(out.masked))
	}
	if q.follow && s.draining.Err() != nil {
		w.Header().Set(localapi.DroppedTrailer, "1")
	}
	_ = out.control.SetWriteDeadline(time.Time{})
	return nil // it fails only if the client is gone or stops reading
}

// copyOutput copies the reader's output up to about the raw offset end, because otherwise
// a child that prints for ever would keep a slower client. With q.follow it also copies
// later output, up to the end of the command if q names one.
func (s *Server) copyOutput(ctx context.Context, out *pieces, rd *output.Reader, q readQuery, end int64) {
	buf := make([]byte, localapi.ReadChunk)
	for {
		ev, ok, err := rd.TryNext(buf)
		if !ok && err == nil && q.follow {
			ev, err = rd.Next(ctx, buf)
			ok = err == nil
		}
		var lagged *output.LaggedError
		switch {
		case errors.As(err, &lagged) && q.marks:
			err = out.mark(lagged.Raw, localapi.Control{Type: localapi.ControlLagged, Lost: lagged.Lost})
		case errors.As(err, &lagged):
			err = out.send(output.Event{Data: lostLine(lagged.Lost), Raw: lagged.Raw})
		case err != nil || !ok:
			return
		case ev.Mark == nil:
			err = out.send(ev)
		case ev.Mark.Kind == output.MarkCommandFinished && ev.Mark.Command.N == q.command:
			return
		case ev.Mark.Kind == output.MarkResized && q.marks:
			err = out.mark(ev.Raw, localapi.Control{Type: localapi.ControlResized, Cols: ev.Mark.Size.Cols, Rows: ev.Mark.Size.Rows})
		case ev.Mark.Kind == output.MarkExited && q.marks:
			err = out.mark(ev.Raw, localapi.Control{Type: localapi.ControlExit, Code: ev.Mark.Exit.Code, Signal: ev.Mark.Exit.Signal})
		}
		if err != nil || len(ev.Data) > 0 && !q.follow && ev.Raw >= end {
			return
		}
	}
}

func lostLine(n int64) []byte { return fmt.Appendf(nil, "\n[tether: %d bytes were lost here]\n", n) }

// open returns a reader for the query, and the text before it.
func open(h term.Handle, q readQuery) (rd *output.Reader, head output.Event, err error) {
	if q.from > 0 || q.marks {
		rd, err = h.Reader(output.ReaderOptions{View: q.view, From: q.from, Hold: q.marks})
		return rd, head, err
	}
	if q.command == 0 {
		return openTail(h, q)
	}
	commands, err := h.Commands()
	if err != nil {
		return nil, head, err
	}
	for _, c := range commands {
		if c.N == q.command {
			rd, err = h.Reader(output.ReaderOptions{View: q.view, From: c.Start})
			return rd, head, err
		}
	}
	e := &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("no command %d", q.command), Hint: "tether commands ID lists the commands"}
	if !h.Info().CommandDetection {
		e.Hint = "this terminal reports no commands: it runs no shell, or a shell without integration"
	}
	return nil, head, e
}

// openTail returns a reader and the text before it: the terminal's last q.lines lines, or
// a reader at the oldest byte kept.
func openTail(h term.Handle, q readQuery) (rd *output.Reader, head output.Event, err error) {
	if q.lines == 0 {
		i := h.Info()
		rd, err = h.Reader(output.ReaderOptions{View: q.view, From: i.Bytes - i.Retained})
		return rd, head, err
	}
	for tail := int64(q.lines) * lineGuess; ; tail *= 4 {
		now := h.Info()
		whole := tail >= now.Retained
		rd, err := h.Reader(output.ReaderOptions{View: q.view, Tail: tail})
		if err != nil {
			return nil, head, err
		}
		head, err := readUntil(rd, now.Bytes)
		if last := clip.Last(head.Data, q.lines); err == nil && (len(last) < len(head.Data) || whole) {
			head.Data = last
			return rd, head, nil
		}
		rd.Close()
		if whole && err != nil { // the child prints faster than this reads
			return nil, head, err
		}
	}
}

// readUntil returns the available output up to about the raw offset end, as one piece, so
// that it returns even if a child prints for ever.
func readUntil(rd *output.Reader, end int64) (all output.Event, err error) {
	for {
		all.Data = slices.Grow(all.Data, localapi.ReadChunk)
		ev, ok, err := rd.TryNext(all.Data[len(all.Data):cap(all.Data)])
		if errors.Is(err, io.EOF) || err == nil && !ok {
			return all, nil
		}
		if err != nil {
			return output.Event{}, err
		}
		all.Data = all.Data[:len(all.Data)+len(ev.Data)]
		all.Masked += ev.Masked
		if all.Raw = ev.Raw; ev.Raw >= end && len(ev.Data) > 0 {
			return all, nil
		}
	}
}

// deadlined is a writer that flushes each write and gives it a deadline of its own.
type deadlined struct {
	w       io.Writer
	control *http.ResponseController
	timeout time.Duration
}

func (d *deadlined) Write(p []byte) (int, error) {
	if err := d.control.SetWriteDeadline(time.Now().Add(d.timeout)); err != nil {
		return 0, err
	}
	n, err := d.w.Write(p)
	return n, cmp.Or(err, d.control.Flush())
}

// pieces writes output, with offsets if the client has asked for them.
type pieces struct {
	deadlined
	offsets bool
	masked  int    // places so far
	buf     []byte // scratch
}

// send writes the event's data, if it has any.
func (p *pieces) send(ev output.Event) error {
	if len(ev.Data) == 0 {
		return nil
	}
	p.masked += ev.Masked
	if p.offsets {
		return p.piece(ev.Raw, uint32(ev.Masked), ev.Data)
	}
	_, err := p.Write(ev.Data)
	return err
}

// mark writes what is not output, at a raw offset.
func (p *pieces) mark(raw int64, c localapi.Control) error {
	return p.piece(raw, localapi.PieceControl, c.Encode())
}

func (p *pieces) piece(raw int64, kind uint32, data []byte) error {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(p.buf[:0], uint64(raw)), kind)
	p.buf = append(binary.BigEndian.AppendUint32(head, uint32(len(data))), data...)
	_, err := p.Write(p.buf)
	return err
}

// screen answers with the terminal's present screen, however long ago it was drawn.
func (s *Server) screen(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	q := paramsOf(r)
	colours := q.Get("colours") == "1"
	if err := q.unknown(); err != nil {
		return err
	}
	is, masked, err := agenttools.Showing(r.Context(), mcpTerminal{h})
	if err != nil {
		return err
	}
	shown := localapi.Screen{SchemaVersion: localapi.SchemaVersion, Text: is.Text(), Truncated: is.Doubtful(), Masked: masked}
	shown.Cols, shown.Rows = is.Size()
	shown.CursorCol, shown.CursorRow = is.Cursor()
	if colours {
		shown.Coloured = is.Coloured()
	}
	return reply(w, shown)
}
