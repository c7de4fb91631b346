package localclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"tether/agent/localapi"
)

// ReadOptions selects a part of a terminal's output.
type ReadOptions struct {
	View    string // "text" (default: valid UTF-8 as observers see it), "screen" or "raw"
	Lines   int    // the last this many; 0 means all that is kept
	Command int    // only the output of this command of a shell; 0 means all
	Follow  bool   // go on until the terminal exits, or the command ends
}

// Read returns the terminal's output. The caller must Close it; it ends early when ctx does. If the daemon ends first, the error is
// ErrDropped.
func (c *Client) Read(ctx context.Context, ref string, o ReadOptions) (*Output, error) {
	q := url.Values{}
	if o.View != "" {
		q.Set("view", o.View)
	}
	if o.Lines != 0 {
		q.Set("lines", strconv.Itoa(o.Lines))
	}
	if o.Command != 0 {
		q.Set("command", strconv.Itoa(o.Command))
	}
	if o.Follow {
		q.Set("follow", "1")
	}
	resp, err := c.send(ctx, http.MethodGet, terminalPath(ref, "/output")+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return &Output{resp, o.Follow}, nil
}

// Output is a terminal's output. One goroutine may use it.
type Output struct {
	resp   *http.Response
	follow bool // the terminal's end is distinguished from the daemon's
}

// Masked is the number of masked places in the output read to its end, for an agent.
func (f *Output) Masked() int {
	n, _ := strconv.Atoi(f.resp.Trailer.Get(localapi.MaskedTrailer)) // none is 0
	return n
}

// Read implements io.Reader.
func (f *Output) Read(p []byte) (int, error) {
	n, err := f.resp.Body.Read(p)
	switch {
	case !f.follow:
	case errors.Is(err, io.EOF) && f.resp.Trailer.Get(localapi.DroppedTrailer) != "":
		return n, ErrDropped
	case err != nil && !errors.Is(err, io.EOF) && f.resp.Request.Context().Err() == nil:
		return n, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	return n, err
}

// Close ends the reading.
func (f *Output) Close() error { return f.resp.Body.Close() }

// FollowOptions says from where to follow a terminal.
type FollowOptions struct {
	From int64 // raw offset; Event.Raw of the last event one had
	// Lease keeps the terminal alive while it is followed and a little longer, see SpawnRequest.Leased. Only its owner may.
	Lease bool
}

// Follow opens the stream of the output, from an offset on, and of the exit of the terminal named ref. The caller must Close it; it ends
// early when ctx does.
func (c *Client) Follow(ctx context.Context, ref string, o FollowOptions) (*Follower, error) {
	q := url.Values{"from": {strconv.FormatInt(o.From, 10)}}
	if o.Lease {
		q.Set("lease", "1")
	}
	resp, err := c.send(ctx, http.MethodGet, terminalPath(ref, "/events")+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return &Follower{body: resp.Body, lines: bufio.NewReaderSize(resp.Body, 64<<10)}, nil
}

// Follower reads the events of one terminal. It is for one goroutine, except Close.
type Follower struct {
	body  io.ReadCloser
	lines *bufio.Reader
	line  []byte // scratch
}

// Next waits for the next event. After EventExit or EventDropped there is none. A connection that ends without them gives ErrDropped.
func (f *Follower) Next() (localapi.Event, error) {
	f.line = f.line[:0]
	for {
		part, err := f.lines.ReadSlice('\n')
		f.line = append(f.line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return localapi.Event{}, fmt.Errorf("%w: %w", ErrDropped, err)
		}
		if len(f.line) > maxEvent {
			return localapi.Event{}, fmt.Errorf("%w: a line of more than %d bytes", ErrDropped, maxEvent)
		}
	}
	var e localapi.Event
	if err := json.Unmarshal(f.line, &e); err != nil {
		return localapi.Event{}, fmt.Errorf("the daemon's event: %w", err)
	}
	return e, nil
}

// Close ends the following.
func (f *Follower) Close() { f.body.Close() }

// maxEvent bounds one line of events, in bytes: output of localapi.ReadChunk, which JSON may make six times as long, and the other fields.
const maxEvent = 6*localapi.ReadChunk + 1<<10

// Events asks for events. The caller must Close it; it ends early when ctx does.
func (c *Client) Events(ctx context.Context, r localapi.EventsRequest) (*EventStream, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, http.MethodPost, "/v1/events", body)
	if err != nil {
		return nil, err
	}
	h := &EventStream{resp.Body, bufio.NewScanner(resp.Body)}
	h.in.Buffer(make([]byte, 0, 8<<10), maxHappening)
	return h, nil
}

// EventStream reads events. It is for one goroutine, except Close.
type EventStream struct {
	body io.ReadCloser
	in   *bufio.Scanner
}

// Next waits for the next line. It returns io.EOF when nothing more comes, and ErrDropped when the daemon has gone.
func (h *EventStream) Next() (localapi.EventLine, error) {
	if !h.in.Scan() {
		if err := h.in.Err(); err != nil {
			return localapi.EventLine{}, fmt.Errorf("%w: %w", ErrDropped, err)
		}
		return localapi.EventLine{}, io.EOF
	}
	var x localapi.EventLine
	if err := json.Unmarshal(h.in.Bytes(), &x); err != nil {
		return x, fmt.Errorf("the daemon's event: %w", err)
	}
	if x.Dropped {
		return x, ErrDropped
	}
	return x, nil
}

// Close ends the subscriptions.
func (h *EventStream) Close() { h.body.Close() }

// maxHappening bounds one line, in bytes: an event, and a cursor of many terminals.
const maxHappening = 256 << 10
