// Package link has what a host knows of the other end of a connection: how much memory
// its messages take before they have an effect, and until they are read ([Memory]);
// whether it is still there ([Pulse]); and whether what was sent has arrived. It knows no
// protocol.
package link

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"tether/host/admission"
	"tether/host/rights"
	"tether/jsonrpc"
	"tether/mcp"
)

// The memory of clients' messages before they have an effect is bounded over all
// connections: receive buffers, decoded messages, and agents' requests until they are
// answered. Together with sendingBytes, these are 256 MiB with 4,096 connections, of
// which each has a first buffer of 16 KiB.
const (
	receiveBytes = 64 << 20  // bytes: half for buffers of up to 128 KiB, half for longer ones
	decodedBytes = 64 << 20  // estimated bytes of decoded messages
	askedBytes   = 16 << 20  // estimated bytes of agents' requests, until they are answered
	longestAsked = 512 << 10 // bytes of a request over HTTP
	leastCalled  = 16 << 10  // least estimate for a call over a WebSocket; one call of each session is not counted
	mostDecoded  = 32 << 20  // greatest estimate for one message; the tests measure 20 MiB with MaxValues
	freeDecoded  = 4 << 10   // bytes up to which a decoded message is not counted: those of 4,096 connections take 16 MiB
	perValue     = 640       // estimated bytes of a decoded value; a tool takes 600
	perText      = 4         // estimated bytes for each byte of a message: it is copied, quoted and unquoted
)

// MaxValues bounds the JSON values in one message from a client, since each takes memory
// when decoded. A change of title has a dozen, the tools of a session have some thousand.
const MaxValues = 32 << 10

// Data prepared for one connection alone, until it has been read, is bounded over all
// connections, too: answers with snapshots, text that pages show, and resynchronisations
// of subscribers that fell behind.
const (
	sendingBytes = 32 << 20 // bytes
	// FreeSending is how many bytes are not counted: of a snapshot without recorded text.
	FreeSending = 4 << 10
)

// Memory has the budgets for these bounds.
type Memory struct {
	arrival      time.Duration // how long a message may take to arrive; set once
	medium, long Budget
	decoded      Budget
	asked        Budget
	Sending      Budget // by name of the reader
}

// NewMemory returns the budgets of a host whose messages may take so long to arrive.
func NewMemory(arrival time.Duration) *Memory {
	const buffers = receiveBytes / 2
	return &Memory{arrival: arrival, medium: newBudget(buffers, buffers/4), long: newBudget(buffers, buffers/4), decoded: newBudget(decodedBytes, mostDecoded),
		asked: newBudget(askedBytes, askedBytes/4), Sending: newBudget(sendingBytes, sendingBytes/4)}
}

// Receiver is one connection's share of the buffers; it implements wsconn.Memory. After
// its creation it belongs to the receiving goroutine.
type Receiver struct {
	all  *Memory
	name string // of the principal
	Late func() // ends the connection because a message takes too long to arrive; set before anything is received

	medium, long int         // bytes that it has taken from the budgets
	arriving     *time.Timer // calls Late; nil before the first longer message
}

// NewReceiver returns the share of a connection of that name.
func (m *Memory) NewReceiver(name string) *Receiver { return &Receiver{all: m, name: name} }

// Reserve implements wsconn.Memory.
func (i *Receiver) Reserve(ctx context.Context, n int) error {
	from, has := &i.all.medium, &i.medium
	if i.medium > 0 {
		from, has = &i.all.long, &i.long
	}
	n = min(n, from.Part)
	if err := from.Take(ctx, i.name, n); err != nil {
		return err
	}
	*has = n
	if i.arriving == nil {
		i.arriving = time.AfterFunc(i.all.arrival, i.Late)
	} else {
		i.arriving.Reset(i.all.arrival)
	}
	return nil
}

// Arrived implements wsconn.Memory.
func (i *Receiver) Arrived() { i.arriving.Stop() }

// Release implements wsconn.Memory.
func (i *Receiver) Release() {
	if i.medium > 0 {
		i.arriving.Stop()
		i.all.medium.Give(i.name, i.medium)
	}
	if i.long > 0 {
		i.all.long.Give(i.name, i.long)
	}
	i.medium, i.long = 0, 0
}

// Decode waits until a message of an estimated size may be decoded and handled. The
// caller calls done after that. It fails when ctx ends.
func (m *Memory) Decode(ctx context.Context, name string, size int) (done func(), err error) {
	if size <= freeDecoded {
		return func() {}, nil
	}
	if err := m.decoded.Take(ctx, name, size); err != nil {
		return nil, err
	}
	return func() { m.decoded.Give(name, size) }, nil
}

// DecodedSize estimates the size of decoded params, in bytes. It counts values by the
// characters before them: each value but the first follows a comma or an opening bracket.
// Colons are not counted, since the value of a member was counted with its name.
func DecodedSize(params []byte) int {
	values := 1 + bytes.Count(params, []byte{','}) + bytes.Count(params, []byte{'['}) + bytes.Count(params, []byte{'{'})
	return min(perValue*min(values, MaxValues)+perText*len(params), mostDecoded)
}

var (
	errLongRequest = &admission.Refusal{Status: http.StatusRequestEntityTooLarge, Text: "the request is too long, or has too many JSON values, for this host"}
	errHalfRequest = &admission.Refusal{Status: http.StatusBadRequest, Text: "the request has not arrived whole", Quiet: true}
	errManyLong    = &admission.Refusal{Status: http.StatusServiceUnavailable, Text: "too many requests of agents are being answered; try again later", Quiet: true}
)

// Whole reads an agent's request over HTTP once there is room for it, without decoding
// it. It waits at most as long as a message may take to arrive. The caller calls done
// when the request has been answered.
func (m *Memory) Whole(w http.ResponseWriter, r *http.Request, name string) (done func(), why *admission.Refusal) {
	n := r.ContentLength
	switch {
	case n >= 0 && n <= freeDecoded:
		return func() {}, nil // the server reads no more of it
	case n > longestAsked:
		return nil, errLongRequest
	case n < 0:
		n = longestAsked
	}
	has := perText * int(n)
	ctx, cancel := context.WithTimeout(r.Context(), m.arrival)
	defer cancel()
	if m.asked.Take(ctx, name, has) != nil {
		return nil, errManyLong
	}
	done = func() { m.asked.Give(name, has) }
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, n))
	size := DecodedSize(body)
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err != nil && !tooLong:
		why = errHalfRequest
	case tooLong || size > m.asked.Part:
		why = errLongRequest
	case size > has && !m.asked.Try(name, size-has):
		why = errManyLong
	default:
		has = max(has, size)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return done, nil
	}
	done()
	return nil, why
}

const codeBusy = -32000 // JSON-RPC: the first that a server may give a meaning of its own

// Called takes room for an agent's message over a WebSocket, or returns why there is
// none. It does not wait, because a closed connection would go unnoticed while a message
// waits. The caller calls done when the message has been answered. One short call of a
// session, marked by free, is not counted.
func (m *Memory) Called(name string, line []byte, free *atomic.Bool) (done func(), why error) {
	if len(line) <= freeDecoded && free.CompareAndSwap(false, true) {
		return func() { free.Store(false) }, nil
	}
	n := max(DecodedSize(line), leastCalled)
	switch {
	case n > m.asked.Part:
		return nil, &mcp.Refused{Code: int64(jsonrpc.CodeInvalidRequest), Text: errLongRequest.Text}
	case !m.asked.Try(name, n):
		return nil, &mcp.Refused{Code: codeBusy, Text: errManyLong.Text}
	}
	return func() { m.asked.Give(name, n) }, nil
}

// Send waits for memory for an answer of up to that many bytes, and returns for how many
// there is room, until done is called.
func (m *Memory) Send(ctx context.Context, p rights.Principal, bytes int64) (room int, done func(), err error) {
	n := int(min(bytes, int64(m.Sending.Part)))
	if err := m.Sending.Take(ctx, p.Name, n); err != nil {
		return 0, nil, err
	}
	return n, func() { m.Sending.Give(p.Name, n) }, nil
}
