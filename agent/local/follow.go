package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/jsonspan"
)

// events streams the terminal's output from an offset on, and its exit, as lines of JSON. It returns when the terminal has exited, the
// client has gone, or the server drains.
func (s *Server) events(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	q := paramsOf(r)
	from, err := q.number("from", 1<<62)
	leased := q.Get("lease") == "1"
	if err = cmp.Or(err, q.unknown()); err != nil {
		return err
	}
	rd, err := h.Reader(term.ReaderOptions{View: term.ViewText, From: from, Hold: true})
	if err != nil {
		return err
	}
	defer rd.Close()
	if leased {
		leave, err := s.leases.take(ActorFrom(r.Context()), h)
		if err != nil {
			return err
		}
		defer leave()
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.draining, cancel)()

	w.Header().Set("Content-Type", "application/x-ndjson")
	f := &feed{out: &deadlined{w: w, control: http.NewResponseController(w), timeout: s.opts.WriteTimeout}, reader: rd}
	if err := f.out.control.Flush(); err != nil {
		return nil // the client is gone
	}
	f.run(ctx)
	if s.draining.Err() != nil {
		f.last(localapi.Event{Type: localapi.EventDropped, Message: "the daemon is shutting down"})
	}
	_ = f.out.control.SetWriteDeadline(time.Time{})
	return nil
}

// feed sends one follower the events of a terminal. It belongs to the goroutine of run.
type feed struct {
	out    *deadlined
	reader *term.Reader
	line   []byte // scratch
}

// run returns after the exit, when the client does not read for too long, or when ctx ends.
func (f *feed) run(ctx context.Context) {
	buf := make([]byte, localapi.ReadChunk)
	for {
		ev, err := f.reader.Next(ctx, buf)
		var lagged *term.LaggedError
		switch {
		case errors.As(err, &lagged):
			err = f.send(appendEvent(f.line[:0], localapi.EventLagged, "lost", lagged.Lost))
		case err != nil:
		case len(ev.Data) > 0:
			line := appendEvent(f.line[:0], localapi.EventOutput, "raw", ev.Raw)
			if line = line[:len(line)-1]; ev.Masked > 0 {
				line = strconv.AppendInt(append(line, `,"masked":`...), int64(ev.Masked), 10)
			}
			line = append(line, `,"data":`...)
			err = f.send(append(jsonspan.AppendQuote(line, ev.Data), '}'))
		case ev.Mark != nil && ev.Mark.Kind == term.MarkResized:
			line := appendEvent(f.line[:0], localapi.EventResized, "cols", int64(ev.Mark.Size.Cols))
			line = append(strconv.AppendInt(append(line[:len(line)-1], `,"rows":`...), int64(ev.Mark.Size.Rows), 10), '}')
			err = f.send(line)
		case ev.Mark != nil && ev.Mark.Kind == term.MarkExited:
			exit := ev.Mark.Exit
			f.last(localapi.Event{Type: localapi.EventExit, Raw: ev.Raw, Code: exit.Code, Signal: exit.Signal, At: exit.At})
			return
		}
		if err != nil {
			return
		}
	}
}

// appendEvent appends an event with one number.
func appendEvent(dst []byte, kind localapi.EventType, name string, n int64) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","`...)
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return append(strconv.AppendInt(dst, n, 10), '}')
}

func (f *feed) send(line []byte) error {
	f.line = append(line, '\n')
	_, err := f.out.Write(f.line)
	return err
}

// last sends the last event, if the client still reads.
func (f *feed) last(e localapi.Event) {
	if data, err := json.Marshal(e); err == nil { // cannot fail: strings, numbers and a time of our era
		_ = f.send(append(f.line[:0], data...))
	}
}
