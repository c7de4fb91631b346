package localclient

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
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
	From    int64  // with Follow: if not 0, begin at this raw offset, such as Message.Raw
	// Marks, with Follow, adds sizes, losses and the exit, for Output.Next. Meanwhile the
	// terminal may wait for the reader.
	Marks bool
	// Lease, with Marks, keeps a leased terminal alive while it is followed and some
	// seconds longer, see SpawnRequest.Leased. Only whoever may kill the terminal may set
	// it.
	Lease bool
}

// Read returns the terminal's output. The caller must Close it. The output ends early
// when ctx ends. If the daemon ends before, it goes on with the next one as back says;
// without back, reading returns ErrDropped. With back, ref must be an id, because the
// next daemon's terminal of that name could be another one.
func (c *Client) Read(ctx context.Context, ref string, o ReadOptions, back *Comeback) (*Output, error) {
	f := &Output{ctx: ctx, client: c, ref: ref, o: o, back: back, at: o.From}
	return f, f.open()
}

// Output is a terminal's output. One goroutine may use it.
type Output struct {
	ctx    context.Context
	client *Client
	ref    string
	o      ReadOptions
	back   *Comeback

	resp   *http.Response
	in     *bufio.Reader // the body, if the daemon sends offsets; else nil
	piece  []byte        // what Read has left of the last piece
	buf    bytes.Buffer  // of pieces
	masked int           // places in the pieces
	at     int64         // raw offset at which to continue
}

// Message is a message of a terminal's stream. It has either Data or a Control.
type Message struct {
	Data    []byte // valid until the next call
	Raw     int64  // raw offset after it; 0 if it is not known
	Masked  int    // number of places in Data that are masked for an agent
	Control *localapi.Control
}

// open begins to read, at the beginning or where the last daemon has ended.
func (f *Output) open() error {
	q := url.Values{}
	add := func(is bool, name, value string) {
		if is {
			q.Set(name, value)
		}
	}
	add(f.o.View != "", "view", f.o.View)
	add(f.o.Lines != 0, "lines", strconv.Itoa(f.o.Lines))
	add(f.o.Command != 0, "command", strconv.Itoa(f.o.Command))
	add(f.o.Follow, "follow", "1")
	add(f.o.Follow, "offsets", "1")
	add(f.o.Marks, "marks", "1")
	add(f.o.Lease, "lease", "1")
	add(f.at != 0, "from", strconv.FormatInt(f.at, 10))
	resp, err := f.client.send(f.ctx, http.MethodGet, terminalPath(f.ref, "/output")+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	if f.resp != nil {
		f.resp.Body.Close()
	}
	f.resp, f.in = resp, nil
	if resp.Header.Get(localapi.OffsetsHeader) == "1" {
		f.in = bufio.NewReaderSize(resp.Body, 64<<10)
	}
	return nil
}

// Masked returns the number of masked places in the output, for an agent. Without
// offsets, it is known once the output was read to its end.
func (f *Output) Masked() int {
	if f.in != nil {
		return f.masked
	}
	n, _ := strconv.Atoi(f.resp.Trailer.Get(localapi.MaskedTrailer)) // none is 0
	return n
}

// Read implements io.Reader. It leaves out what Marks adds.
func (f *Output) Read(p []byte) (int, error) {
	if f.in == nil {
		n, err := f.resp.Body.Read(p)
		return n, f.ended(err)
	}
	for len(f.piece) == 0 {
		m, err := f.Next()
		if err != nil {
			return 0, err
		}
		f.piece = m.Data
	}
	n := copy(p, f.piece)
	f.piece = f.piece[n:]
	return n, nil
}

// Next returns the next piece of output that is followed. It returns io.EOF at the end,
// and ErrDropped if the daemon is gone for good.
func (f *Output) Next() (Message, error) {
	for {
		m, err := f.next()
		if err = f.ended(err); f.back == nil || !errors.Is(err, ErrDropped) {
			return m, err
		}
		if err := f.back.Do(f.ctx, err, f.open); err != nil {
			return m, err
		}
	}
}

// next reads a piece. It is passed on only when it is whole: a client that goes on after
// it misses nothing and repeats nothing.
func (f *Output) next() (m Message, err error) {
	var head [localapi.PieceBytes]byte
	if f.in == nil {
		return m, errors.New("the daemon is older than this program, and does not say where output is")
	}
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return m, err
	}
	kind := binary.BigEndian.Uint32(head[localapi.OffsetBytes:])
	f.buf.Reset()
	_, err = io.CopyN(&f.buf, f.in, int64(binary.BigEndian.Uint32(head[localapi.OffsetBytes+4:])))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return m, err
	}
	m.Raw = int64(binary.BigEndian.Uint64(head[:]) &^ (1 << 63))
	f.at = m.Raw
	if kind == localapi.PieceControl {
		c, err := localapi.ParseControl(f.buf.Bytes())
		m.Control = &c
		return m, err
	}
	m.Data, m.Masked = f.buf.Bytes(), int(kind)
	f.masked += m.Masked
	return m, nil
}

// ended returns ErrDropped or ErrStopped for an error by which the daemon ends a followed
// output before the terminal does.
func (f *Output) ended(err error) error {
	switch {
	case !f.o.Follow || err == nil || f.ctx.Err() != nil:
	case errors.Is(err, io.EOF) && f.resp.Trailer.Get(localapi.DroppedTrailer) != "":
		return ErrStopped
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %w", ErrDropped, err)
	}
	return err
}

// Close ends the reading.
func (f *Output) Close() error { return f.resp.Body.Close() }

// Events subscribes to events. The caller must Close the stream. It ends early when ctx
// ends. If the daemon ends before, it goes on with the next one as back says, at the last
// cursors.
func (c *Client) Events(ctx context.Context, r localapi.EventsRequest, back *Comeback) (*EventStream, error) {
	r.Subscriptions = slices.Clone(r.Subscriptions) // Next moves their cursors
	h := &EventStream{ctx: ctx, client: c, request: r, back: back}
	return h, h.open()
}

// EventStream reads events. It is for one goroutine.
type EventStream struct {
	ctx     context.Context
	client  *Client
	request localapi.EventsRequest
	back    *Comeback

	body  io.ReadCloser
	in    *bufio.Scanner
	ended int // subscriptions that have ended
}

func (h *EventStream) open() error {
	resp, err := h.client.send(h.ctx, http.MethodPost, "/v1/events", h.request)
	if err != nil {
		return err
	}
	h.Close()
	h.body, h.in, h.ended = resp.Body, bufio.NewScanner(resp.Body), 0
	h.in.Buffer(make([]byte, 0, 8<<10), maxHappening)
	return nil
}

// Next waits for the next line. It returns io.EOF when all subscriptions have ended, and
// ErrDropped when the daemon is gone for good.
func (h *EventStream) Next() (localapi.EventLine, error) {
	for {
		x, err := h.next()
		if h.ctx.Err() != nil || h.back == nil || !errors.Is(err, ErrDropped) {
			return x, err
		}
		if err := h.back.Do(h.ctx, err, h.open); err != nil {
			return x, err
		}
	}
}

func (h *EventStream) next() (x localapi.EventLine, err error) {
	if h.ended == len(h.request.Subscriptions) {
		return x, io.EOF
	}
	if !h.in.Scan() {
		return x, fmt.Errorf("%w: %w", ErrDropped, cmp.Or(h.in.Err(), io.ErrUnexpectedEOF))
	}
	if err := jsonspan.Unmarshal(h.in.Bytes(), &x); err != nil {
		return x, fmt.Errorf("the daemon's event: %w", err)
	}
	switch {
	case x.Dropped:
		return x, ErrStopped
	case x.Sub < 0 || x.Sub >= len(h.request.Subscriptions):
		return x, errors.New("the daemon's event belongs to no subscription")
	case x.End:
		h.ended++
	}
	if x.Cursor != "" {
		h.request.Subscriptions[x.Sub].Cursor = &x.Cursor
	}
	return x, nil
}

// Close ends the subscriptions.
func (h *EventStream) Close() {
	if h.body != nil {
		h.body.Close()
	}
}

// maxHappening bounds one line of an EventStream, in bytes: an event, and a cursor for
// many terminals.
const maxHappening = 256 << 10
