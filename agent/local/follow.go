package local

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

// FollowOptions says from where to follow a terminal.
type FollowOptions struct {
	From int64 // raw offset; Event.Raw of the last event one had
	// Lease keeps the terminal alive while it is followed and a little longer, see SpawnRequest.Leased. Only its owner may.
	Lease bool
}

// Follower reads the events of one terminal. It is for one goroutine, except Close.
type Follower struct {
	body  io.ReadCloser
	lines *bufio.Reader
	line  []byte // scratch
}

// maxEvent bounds one line of events in bytes: localapi.ReadChunk, each byte of which may be six in JSON, and the rest.
const maxEvent = 6*localapi.ReadChunk + 1<<10

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
