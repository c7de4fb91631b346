package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
)

const (
	maxLines = 1 << 20 // of one read; most logs have fewer
	// lineGuess is the assumed length of a line, in bytes, at the start of the search for the last lines.
	lineGuess = 128
)

// readQuery is the query of an output request.
type readQuery struct {
	view    term.View
	lines   int // how many of the last lines; 0 means all that is kept
	command int // only the output of this command; 0 means of all
	follow  bool
}

var views = map[string]term.View{"": term.ViewText, "text": term.ViewText, "screen": term.ViewScreen, "raw": term.ViewRaw}

func parseRead(q url.Values) (readQuery, error) {
	view, ok := views[q.Get("view")]
	if !ok {
		return readQuery{}, badQuery("view", q, "text, screen or raw")
	}
	lines, err := number(q, "lines", maxLines)
	if err != nil {
		return readQuery{}, err
	}
	command, err := number(q, "command", math.MaxInt32)
	return readQuery{view: view, lines: int(lines), command: int(command), follow: q.Get("follow") == "1"}, err
}

// number reads a number from 0 to max; 0 if there is none.
func number(q url.Values, name string, max int64) (int64, error) {
	if !q.Has(name) {
		return 0, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 || n > max {
		return 0, badQuery(name, q, fmt.Sprintf("a number from 0 to %d", max))
	}
	return n, nil
}

func badQuery(name string, q url.Values, want string) error {
	return localapi.BadRequest("%s %.40q must be %s", name, q.Get(name), want)
}

// output answers with the terminal's output, as bytes. A gap is a separate line.
func (s *Server) output(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	q, err := parseRead(r.URL.Query())
	if err != nil {
		return err
	}
	end := h.Info().Bytes
	rd, head, masked, err := open(h, q)
	if err != nil {
		return err
	}
	defer rd.Close()
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
	out := &deadlined{w: w, control: http.NewResponseController(w), timeout: s.opts.WriteTimeout}
	if _, err := out.Write(head); err == nil {
		masked += s.copyOutput(ctx, out, rd, q, end)
	}
	if h.IsMasked() {
		w.Header().Set(localapi.MaskedTrailer, strconv.Itoa(masked))
	}
	if q.follow && s.draining.Err() != nil {
		w.Header().Set(localapi.DroppedTrailer, "1")
	}
	_ = out.control.SetWriteDeadline(time.Time{})
	return nil // it fails only if the client is gone or stops reading
}

// copyOutput copies the reader's output up to about the raw offset end, because otherwise a child that prints for ever would keep a slower
// client. With q.follow it also copies later output, up to the end of the command if q names one. It returns the number of masked places.
func (s *Server) copyOutput(ctx context.Context, out io.Writer, rd *term.Reader, q readQuery, end int64) (masked int) {
	buf := make([]byte, localapi.ReadChunk)
	for {
		ev, ok, err := rd.TryNext(buf)
		if !ok && err == nil && q.follow {
			ev, err = rd.Next(ctx, buf)
			ok = err == nil
		}
		var lagged *term.LaggedError
		switch {
		case errors.As(err, &lagged):
			ev.Data, ev.Raw = lostLine(lagged.Lost), lagged.Raw
		case err != nil || !ok:
			return masked
		case ev.Mark != nil && ev.Mark.Kind == term.MarkCommandFinished && ev.Mark.Command.N == q.command:
			return masked
		}
		if len(ev.Data) > 0 {
			masked += ev.Masked
			if _, err := out.Write(ev.Data); err != nil || !q.follow && ev.Raw >= end {
				return masked
			}
		}
	}
}

func lostLine(n int64) []byte { return fmt.Appendf(nil, "\n[tether: %d bytes were lost here]\n", n) }

// open returns a reader for the query, the text before it, and the number of masked places in that.
func open(h term.Handle, q readQuery) (*term.Reader, []byte, int, error) {
	if q.command == 0 {
		return openTail(h, q)
	}
	commands, err := h.Commands()
	if err != nil {
		return nil, nil, 0, err
	}
	for _, c := range commands {
		if c.N == q.command {
			rd, err := h.Reader(term.ReaderOptions{View: q.view, From: c.Start})
			return rd, nil, 0, err
		}
	}
	e := &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("no command %d", q.command), Hint: "tether commands ID lists the commands"}
	if !h.Info().CommandDetection {
		e.Hint = "this terminal reports no commands: it runs no shell, or a shell without integration"
	}
	return nil, nil, 0, e
}

// openTail returns a reader and the text before it: the terminal's last q.lines lines, or a reader at the oldest byte kept.
func openTail(h term.Handle, q readQuery) (*term.Reader, []byte, int, error) {
	if q.lines == 0 {
		i := h.Info()
		rd, err := h.Reader(term.ReaderOptions{View: q.view, From: i.Bytes - i.Retained})
		return rd, nil, 0, err
	}
	for tail := int64(q.lines) * lineGuess; ; tail *= 4 {
		now := h.Info()
		whole := tail >= now.Retained
		rd, err := h.Reader(term.ReaderOptions{View: q.view, Tail: tail})
		if err != nil {
			return nil, nil, 0, err
		}
		head, masked, err := readUntil(rd, now.Bytes)
		if start := lastLines(head, q.lines); err == nil && (start > 0 || whole) {
			return rd, head[start:], masked, nil
		}
		rd.Close()
		if whole && err != nil { // the child prints faster than this reads
			return nil, nil, 0, err
		}
	}
}

// readUntil returns the available output up to about the raw offset end, so that it returns even if a child prints for ever. masked is the
// number of masked places in the output.
func readUntil(rd *term.Reader, end int64) (all []byte, masked int, err error) {
	for {
		all = slices.Grow(all, localapi.ReadChunk)
		ev, ok, err := rd.TryNext(all[len(all):cap(all)])
		if errors.Is(err, io.EOF) || err == nil && !ok {
			return all, masked, nil
		}
		if err != nil {
			return nil, 0, err
		}
		all = all[:len(all)+len(ev.Data)]
		masked += ev.Masked
		if ev.Raw >= end && len(ev.Data) > 0 {
			return all, masked, nil
		}
	}
}

// lastLines returns the index at which the last n lines of p begin. An unfinished line counts.
func lastLines(p []byte, n int) int {
	end := len(bytes.TrimSuffix(p, []byte{'\n'}))
	for ; n > 0; n-- {
		end = bytes.LastIndexByte(p[:end], '\n')
		if end < 0 {
			return 0
		}
	}
	return end + 1
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

// screen answers with the terminal's present screen, however long ago it was drawn.
func (s *Server) screen(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	is, masked, err := agenttools.Showing(r.Context(), mcpTerminal{h})
	if err != nil {
		return err
	}
	shown := localapi.Screen{SchemaVersion: localapi.SchemaVersion, Text: is.Text(), Truncated: is.Doubtful(), Masked: masked}
	shown.Cols, shown.Rows = is.Size()
	shown.CursorCol, shown.CursorRow = is.Cursor()
	if r.URL.Query().Get("colours") == "1" {
		shown.Coloured = is.Coloured()
	}
	return reply(w, shown)
}
