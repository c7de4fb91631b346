package localclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"tether/agent/localapi"
	"tether/internal/jsonspan"
)

// ReadOptions selects a part of a terminal's output.
type ReadOptions struct {
	View    string // "text" (default: valid UTF-8 as observers see it), "screen" or "raw"
	Lines   int    // number of the newest lines; 0 means all output that is kept
	Command int    // number of the command whose output is read; 0 means all output
	Follow  bool   // continue until the terminal exits, or the command ends
	From    int64  // with Follow: if not 0, begin at this raw offset, such as Output.At
}

// Read returns the terminal's output. The caller must Close it. The output ends early when ctx ends. If the daemon ends before, reading
// returns ErrDropped.
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
		q.Set("offsets", "1")
	}
	if o.From > 0 {
		q.Set("from", strconv.FormatInt(o.From, 10))
	}
	resp, err := c.send(ctx, http.MethodGet, terminalPath(ref, "/output")+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	f := &Output{resp: resp, follow: o.Follow, at: o.From}
	if o.Follow && resp.Header.Get(localapi.OffsetsHeader) == "1" {
		f.in = bufio.NewReaderSize(resp.Body, 64<<10)
	}
	return f, nil
}

// Output is a terminal's output. One goroutine may use it.
type Output struct {
	resp   *http.Response
	follow bool // the terminal's end is distinguished from the daemon's

	in     *bufio.Reader // the body, if the daemon sends offsets; else nil
	piece  []byte        // what is left of the last piece, which has arrived whole
	buf    bytes.Buffer  // of pieces
	masked int           // places in the pieces
	at     int64
}

// Masked returns the number of masked places in the output, for an agent. Without offsets, it is known once the output was read to its end.
func (f *Output) Masked() int {
	if f.in != nil {
		return f.masked
	}
	n, _ := strconv.Atoi(f.resp.Trailer.Get(localapi.MaskedTrailer)) // none is 0
	return n
}

// At returns the raw offset at which to continue after what was read, 0 for the same beginning. ok is false if the daemon sends no offsets.
// It is exact when Read has returned an error.
func (f *Output) At() (at int64, ok bool) { return f.at, f.in != nil }

// Read implements io.Reader.
func (f *Output) Read(p []byte) (n int, err error) {
	if f.in == nil {
		n, err = f.resp.Body.Read(p)
	} else {
		n, err = f.readPiece(p)
	}
	switch {
	case !f.follow:
	case errors.Is(err, io.EOF) && f.resp.Trailer.Get(localapi.DroppedTrailer) != "":
		return n, ErrDropped
	case err != nil && !errors.Is(err, io.EOF) && f.resp.Request.Context().Err() == nil:
		return n, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	return n, err
}

// readPiece is Read for pieces with offsets. A piece is passed on only when it is whole: a client that goes on after it misses nothing and
// repeats nothing.
func (f *Output) readPiece(p []byte) (int, error) {
	for len(f.piece) == 0 {
		var head [localapi.PieceBytes]byte
		if _, err := io.ReadFull(f.in, head[:]); err != nil {
			return 0, err
		}
		f.buf.Reset()
		_, err := io.CopyN(&f.buf, f.in, int64(binary.BigEndian.Uint32(head[localapi.OffsetBytes+4:])))
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		f.piece = f.buf.Bytes()
		f.at = int64(binary.BigEndian.Uint64(head[:]) &^ (1 << 63))
		f.masked += int(binary.BigEndian.Uint32(head[localapi.OffsetBytes:]))
	}
	n := copy(p, f.piece)
	f.piece = f.piece[n:]
	return n, nil
}

// Close ends the reading.
func (f *Output) Close() error { return f.resp.Body.Close() }

// FollowOptions says from where to follow a terminal.
type FollowOptions struct {
	From int64 // raw offset to begin at, such as Event.Raw of the last received event
	// Lease keeps a leased terminal alive while it is followed and some seconds longer, see SpawnRequest.Leased. Only whoever may kill the
	// terminal may set it.
	Lease bool
}

// Follow opens a stream of events of the terminal that ref names: its output from an offset on, and its exit. The caller must Close the
// Follower. The stream ends early when ctx ends.
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

// Next waits for the next event. EventExit and EventDropped are the last. If the connection ends without them, Next returns ErrDropped.
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
	if err := jsonspan.Unmarshal(f.line, &e); err != nil {
		return localapi.Event{}, fmt.Errorf("the daemon's event: %w", err)
	}
	return e, nil
}

// Close ends the following.
func (f *Follower) Close() { f.body.Close() }

// maxEvent bounds one line of a Follower, in bytes. It has room for localapi.ReadChunk bytes of output, which JSON may make six times as
// long, and the other fields.
const maxEvent = 6*localapi.ReadChunk + 1<<10

// Events subscribes to events. The caller must Close the stream. It ends early when ctx ends.
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

// Next waits for the next line. It returns io.EOF when no more lines follow, and ErrDropped when the daemon has ended.
func (h *EventStream) Next() (localapi.EventLine, error) {
	if !h.in.Scan() {
		if err := h.in.Err(); err != nil {
			return localapi.EventLine{}, fmt.Errorf("%w: %w", ErrDropped, err)
		}
		return localapi.EventLine{}, io.EOF
	}
	var x localapi.EventLine
	if err := jsonspan.Unmarshal(h.in.Bytes(), &x); err != nil {
		return x, fmt.Errorf("the daemon's event: %w", err)
	}
	if x.Dropped {
		return x, ErrDropped
	}
	return x, nil
}

// Close ends the subscriptions.
func (h *EventStream) Close() { h.body.Close() }

// maxHappening bounds one line of an EventStream, in bytes: an event, and a cursor for many terminals.
const maxHappening = 256 << 10
