package local

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"tether/agent/term"
	"tether/internal/jsonspan"
)

// EventType is the kind of an Event.
type EventType string

// The events of a followed terminal. Clients ignore unknown ones.
const (
	EventOutput  EventType = "output"  // Data; Raw is the offset after it
	EventResized EventType = "resized" // Cols, Rows are the size from here on
	EventLagged  EventType = "lagged"  // Lost bytes are missing before the next output
	EventExit    EventType = "exit"    // Code, Signal, At; the last one
	EventDropped EventType = "dropped" // Message says why; the last one, though the terminal may live
)

// Event is one line of JSON for a terminal's followers.
type Event struct {
	Type    EventType `json:"type"`
	Raw     int64     `json:"raw,omitempty"`    // where to follow from to go on after this
	Data    string    `json:"data,omitempty"`   // text as observers see it: valid UTF-8, with escape sequences
	Masked  int       `json:"masked,omitempty"` // places of Data that an agent is not shown
	Lost    int64     `json:"lost,omitempty"`
	Cols    int       `json:"cols,omitempty"`
	Rows    int       `json:"rows,omitempty"`
	Code    int       `json:"code,omitempty"`
	Signal  string    `json:"signal,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Message string    `json:"message,omitempty"`
}

// events streams the terminal's output from an offset on, and its exit, as lines of JSON. It returns when the terminal has exited, the
// client has gone, or the server drains.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	from, err := number(r.URL.Query(), "from", 1<<62)
	if err != nil {
		return err
	}
	rd, err := h.Reader(term.ReaderOptions{View: term.ViewText, From: from, Hold: true})
	if err != nil {
		return err
	}
	defer rd.Close()
	if r.URL.Query().Get("lease") == "1" {
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
		f.last(Event{Type: EventDropped, Message: "the daemon is shutting down"})
	}
	_ = f.out.control.SetWriteDeadline(time.Time{})
	return nil
}

// feed sends one follower the events of a terminal. It is run's goroutine's.
type feed struct {
	out    *deadlined
	reader *term.Reader
	line   []byte // scratch
}

// run returns after the exit, when the client does not read, or with ctx.
func (f *feed) run(ctx context.Context) {
	buf := make([]byte, readChunk)
	for {
		ev, err := f.reader.Next(ctx, buf)
		var lagged *term.LaggedError
		switch {
		case errors.As(err, &lagged):
			err = f.send(appendEvent(f.line[:0], EventLagged, "lost", lagged.Lost))
		case err != nil:
		case len(ev.Data) > 0:
			line := appendEvent(f.line[:0], EventOutput, "raw", ev.Raw)
			if line = line[:len(line)-1]; ev.Masked > 0 {
				line = strconv.AppendInt(append(line, `,"masked":`...), int64(ev.Masked), 10)
			}
			line = append(line, `,"data":`...)
			err = f.send(append(jsonspan.AppendQuote(line, ev.Data), '}'))
		case ev.Mark != nil && ev.Mark.Kind == term.MarkResized:
			line := appendEvent(f.line[:0], EventResized, "cols", int64(ev.Mark.Size.Cols))
			line = append(strconv.AppendInt(append(line[:len(line)-1], `,"rows":`...), int64(ev.Mark.Size.Rows), 10), '}')
			err = f.send(line)
		case ev.Mark != nil && ev.Mark.Kind == term.MarkExited:
			exit := ev.Mark.Exit
			f.last(Event{Type: EventExit, Raw: ev.Raw, Code: exit.Code, Signal: exit.Signal, At: exit.At})
			return
		}
		if err != nil {
			return
		}
	}
}

// appendEvent appends an event with one number.
func appendEvent(dst []byte, kind EventType, name string, n int64) []byte {
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

// last sends an event for which there is time.
func (f *feed) last(e Event) {
	if data, err := json.Marshal(e); err == nil { // strings, numbers and a time of this era always have a form
		_ = f.send(append(f.line[:0], data...))
	}
}
